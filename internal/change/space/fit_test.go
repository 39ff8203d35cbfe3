package space

import (
	"strings"
	"testing"
)

func TestFitsOn(t *testing.T) {
	of := func(used int64) Volume {
		return Volume{
			Name: "data-x-0", Asked: 20 * gib, Has: 20 * gib, Known: true, Size: 20 * gib, Used: used, RateKnown: true,
		}
	}
	for name, c := range map[string]struct {
		volumes []Volume
		size    int64
		want    string
		least   int64
		says    string
	}{
		"much less than the new volume": {[]Volume{of(2 * gib), of(gib)}, 10 * gib, Fits, 10 * gib, "holds 2.0Gi"},
		// 93 hundredths of 10Gi, of which a fifth is to stay free.
		"just enough": {[]Volume{of(7*gib + 440*mib)}, 10 * gib, Fits, 10 * gib, "can hold 9.3Gi"},
		"a bit too much": {
			[]Volume{of(7*gib + 460*mib)}, 10 * gib, DoesNotFit, 10*gib + 64*mib, "make storage.size at least 10304Mi",
		},
		"one of several holds too much": {
			[]Volume{of(gib), of(9 * gib)}, 10 * gib, DoesNotFit, 12*gib + 128*mib, "9.0Gi",
		},
		"it would be full soon": {
			[]Volume{func() Volume { v := of(5 * gib); v.PerDay = 3 * gib; return v }()}, 10 * gib,
			DoesNotFit, 11072 * mib, "fills by 3.0Gi a day",
		},
		"the file system takes more than is thought": {
			[]Volume{func() Volume { v := of(5 * gib); v.Size = 12 * gib; return v }()}, 10 * gib,
			DoesNotFit, 10*gib + 448*mib, "can hold 6.0Gi",
		},
		"a folder of a larger disk": {
			[]Volume{func() Volume { v := of(5 * gib); v.Size = 900 * gib; return v }()}, 10 * gib,
			Fits, 10 * gib, "9.3Gi",
		},
		"one says nothing": {[]Volume{of(gib), {Name: "data-x-1", Has: 20 * gib}}, 10 * gib, NotKnown, 0, "data-x-1"},
		"nobody is there":  {nil, 10 * gib, NotKnown, 0, "no instance"},
	} {
		got := FitsOn(c.volumes, c.size)
		if got.Answer != c.want || got.Least != c.least || !strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %s, at least %d (%d Mi): %s", name, got.Answer, got.Least, got.Least/mib, got.Message)
		}
	}
}

// The least size that is advised does, and one step less does not.
func TestTheLeastSizeThatIsAdvisedDoes(t *testing.T) {
	for used := 128 * mib; used < 40*gib; used += 317 * mib {
		v := []Volume{{
			Name: "a", Has: 50 * gib, Known: true, Size: 49 * gib, Used: used, PerDay: used / 9, RateKnown: true,
		}}
		got := FitsOn(v, 256*mib)
		if got.Answer != DoesNotFit {
			continue
		}
		if at := FitsOn(v, got.Least); at.Answer != Fits {
			t.Errorf("%d Mi are advised for %d Mi: %s", got.Least/mib, used/mib, at.Message)
		}
		if below := FitsOn(v, got.Least-sizeStep); below.Answer != DoesNotFit {
			t.Errorf("%d Mi are advised for %d Mi, and less would do", got.Least/mib, used/mib)
		}
	}
}

// What is made smaller does not grow at once: both go by the same rule.
func TestASmallerVolumeDoesNotGrowAtOnce(t *testing.T) {
	fitted := 0
	for size := 256 * mib; size < 30*gib; size += size/7 + sizeStep {
		for used := 64 * mib; used < size; used += used/5 + mib {
			for _, rate := range []int64{0, used / 20, used / 3} {
				old := Volume{
					Name: "a", Asked: 40 * gib, Has: 40 * gib, Known: true, Size: 39 * gib, Used: used,
					PerDay: rate, RateKnown: true,
				}
				if FitsOn([]Volume{old}, size).Answer != Fits {
					continue
				}
				fitted++
				made := old
				made.Asked, made.Has, made.Size = size, size, size*(100-leastOverhead)/100
				if d := Decide(Growth{Limit: 100 * gib, Size: size, Volumes: []Volume{made}}); d.Answer != Enough {
					t.Fatalf("%d Mi on a volume of %d Mi, %d Mi a day: it fits, and then %s",
						used/mib, size/mib, rate/mib, d.Answer)
				}
			}
		}
	}
	if fitted < 100 {
		t.Errorf("only %d cases fit", fitted)
	}
}

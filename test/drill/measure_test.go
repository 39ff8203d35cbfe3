package main

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// ack is a write that a leader acknowledged: "a1" is the instance a on timeline 1.
func ack(leader string, start, end int) write {
	return write{start: at(start), end: at(end), outcome: Acked, leader: leaderOf(leader)}
}

// at is a time in milliseconds.
func at(milliseconds int) time.Duration { return time.Duration(milliseconds) * ms }

func leaderOf(leader string) Leader { return Leader{Instance: leader[:1], Timeline: leader[1:]} }

func TestTheLongestGapIsThatAfterTheFault(t *testing.T) {
	cases := map[string]struct {
		acks     []write
		from, to int
	}{
		"nobody is ever acknowledged": {nil, 100, 1000},
		"only before the fault":       {[]write{ack("a1", 1, 2), ack("a1", 98, 99)}, 100, 1000},
		"no outage": {
			[]write{ack("a1", 99, 400), ack("a1", 401, 690), ack("a1", 700, 995)}, 690, 995,
		},
		"a longer one before the fault is not meant": {
			[]write{ack("a1", 1, 2), ack("a1", 300, 305), ack("b2", 890, 900)}, 305, 900,
		},
		"the server goes on for a moment": {
			[]write{ack("a1", 101, 150), ack("b2", 800, 850), ack("b2", 900, 990)}, 150, 850,
		},
		"what comes after the end does not count": {[]write{ack("a1", 101, 150), ack("b2", 1800, 1850)}, 150, 1000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := longestGap(c.acks, 100*ms, 1000*ms)
			if want := (gap{at(c.from), at(c.to)}); got != want {
				t.Errorf("longestGap = %v, want %v", got, want)
			}
		})
	}
}

func TestOverlapCountsWhatAnOlderPrimaryAcknowledgedTooLate(t *testing.T) {
	cases := map[string]struct {
		acks   []write
		count  int
		length time.Duration
	}{
		"one primary":                      {[]write{ack("a1", 1, 2), ack("a1", 3, 4)}, 0, 0},
		"one after the other":              {[]write{ack("a1", 1, 2), ack("b2", 3, 4), ack("b2", 5, 6)}, 0, 0},
		"begun before, acknowledged after": {[]write{ack("a1", 1, 2), ack("b2", 3, 4), ack("a1", 3, 9)}, 0, 0},
		"begun after": {[]write{
			ack("a1", 1, 2), ack("b2", 3, 4), ack("a1", 5, 6), ack("b2", 7, 8), ack("a1", 10, 12), ack("b2", 13, 14),
		}, 2, 6 * ms},
		"a primary that comes back, on a newer timeline": {
			[]write{ack("a1", 1, 2), ack("b2", 3, 4), ack("a3", 5, 6)}, 0, 0,
		},
		"two promoted to the same timeline": {
			[]write{ack("a1", 1, 2), ack("b2", 3, 4), ack("c2", 5, 6), ack("b2", 7, 8)}, 1, ms,
		},
		"the oldest of three": {[]write{
			ack("a1", 1, 2), ack("b2", 3, 4), ack("c3", 10, 11), ack("a1", 20, 21),
		}, 1, 16 * ms},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if count, length := overlap(c.acks); count != c.count || length != c.length {
				t.Errorf("overlap = %d, %s; want %d, %s", count, length, c.count, c.length)
			}
		})
	}
}

// seen is what an instance answers every 10 ms between two times.
func seen(leader string, primary bool, from, to int) []sight {
	var sights []sight
	for m := from; m < to; m += 10 {
		sights = append(sights,
			sight{instance: leader[:1], start: at(m), end: at(m + 10), primary: primary, leader: leaderOf(leader)})
	}
	return sights
}

func TestTwoPrimariesIsTheTimeInWhichTwoSayThatTheyAreNotInRecovery(t *testing.T) {
	cases := map[string]struct {
		sights []sight
		want   time.Duration
	}{
		"one":                 {seen("a1", true, 0, 1000), 0},
		"one after the other": {slices.Concat(seen("a1", true, 0, 500), seen("b2", true, 500, 1000)), 0},
		"for a while":         {slices.Concat(seen("a1", true, 0, 600), seen("b2", true, 500, 1000)), 100 * ms},
		"one is silent meanwhile, for too long to be sure": {
			slices.Concat(seen("a1", true, 0, 200), seen("a1", true, 700, 800), seen("b2", true, 300, 600)), 0,
		},
		"a standby is none": {slices.Concat(seen("a1", true, 0, 600), seen("b2", false, 0, 600)), 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := twoPrimaries(c.sights); got != c.want {
				t.Errorf("twoPrimaries = %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheStagesAreThoseOfTheOneThatGoesOn(t *testing.T) {
	sights := slices.Concat(seen("a1", true, 0, 1000), seen("b1", false, 0, 2000), seen("b2", true, 2000, 5000))
	routes := []route{{0, []string{"a"}}, {2100 * ms, []string{}}, {2200 * ms, []string{"b"}}}
	multi := []write{ack("a1", 990, 995), ack("b2", 2050, 2060), ack("b2", 3000, 3010)}
	service := []write{ack("a1", 990, 995), ack("b2", 2300, 2310), ack("b2", 3000, 3010)}
	got := breakDown(evidence{sights, routes, multi, service}, 1000*ms, 3010*ms)
	if want := (stages{Writable: 1000 * ms, Multi: 1060 * ms, Slice: 1200 * ms, Service: 1310 * ms}); got != want {
		t.Errorf("breakDown = %+v, want %+v", got, want)
	}
	if got := breakDown(evidence{sights, routes, []write{ack("a1", 1000, 1001)}, nil}, 1000*ms,
		1010*ms); got != (stages{}) {
		t.Errorf("without an outage: %+v", got)
	}
}

func TestMissingFindsAcknowledgedWritesThatAreGone(t *testing.T) {
	acks := []write{{id: 1}, {id: 2}, {id: 4}}
	if got := missing(acks, []int64{1, 3, 4}); !slices.Equal(got, []int64{2}) {
		t.Errorf("missing = %v, want [2]: 3 was never acknowledged", got)
	}
}

func TestSolePrimaryAsksForAllInstances(t *testing.T) {
	a, b, c := sight{instance: "a", primary: true}, sight{instance: "b"}, sight{instance: "c"}
	if got, err := soleprimary(map[string]sight{"a": a, "b": b, "c": c}, 3); got != "a" || err != nil {
		t.Errorf("soleprimary = %q, %v", got, err)
	}
	c.primary = true
	for name, last := range map[string]map[string]sight{
		"one is silent": {"a": a, "b": b},
		"two primaries": {"a": a, "b": b, "c": c},
	} {
		if got, err := soleprimary(last, 3); err == nil {
			t.Errorf("%s: soleprimary = %q", name, got)
		}
	}
}

package outside

import (
	"slices"
	"testing"
	"time"
)

func TestLongestGap(t *testing.T) {
	start := time.Now()
	at := func(milliseconds ...int) (acks []ack) {
		for i, ms := range milliseconds {
			acks = append(acks, ack{id: int64(i), at: start.Add(time.Duration(ms) * time.Millisecond)})
		}
		return acks
	}
	cases := map[string]struct {
		acks []ack
		want time.Duration
	}{
		"no row":                 {nil, 0},
		"one row":                {at(5), 0},
		"the gap in the middle":  {at(0, 10, 900, 910), 890 * time.Millisecond},
		"the gap before the end": {at(0, 10, 20, 500), 480 * time.Millisecond},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := longestGap(c.acks); got != c.want {
				t.Errorf("longestGap = %s, want %s", got, c.want)
			}
		})
	}
}

func TestMissingFindsAcknowledgedRowsThatAreGone(t *testing.T) {
	acks := []ack{{id: 1}, {id: 2}, {id: 4}}
	if got := missing(acks, []int64{1, 3, 4}); !slices.Equal(got, []int64{2}) {
		t.Errorf("missing = %v, want [2]: 3 was never acknowledged", got)
	}
}

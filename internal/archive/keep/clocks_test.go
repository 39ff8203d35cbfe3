package keep

import (
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
)

func TestThePolicyGoesByTheEarliestClock(t *testing.T) {
	at := archivetest.Hour
	store := func(now time.Time) Clock { return Clock{Whose: "the store's", Now: now} }
	operator := func(now time.Time) Clock { return Clock{Whose: "the operator's", Now: now, Behind: 24 * time.Hour} }
	for name, c := range map[string]struct {
		age    time.Duration
		others []Clock
		want   time.Time
		said   bool
	}{
		"there is no other":              {time.Hour, nil, at(50), false},
		"the other says nothing":         {time.Hour, []Clock{store(time.Time{})}, at(50), false},
		"the other is the same":          {time.Hour, []Clock{store(at(50))}, at(50), false},
		"the other is an hour behind":    {time.Hour, []Clock{store(at(49))}, at(49), false},
		"the other is two hours behind":  {time.Hour, []Clock{store(at(48))}, at(48), true},
		"the other is two hours ahead":   {time.Hour, []Clock{store(at(52))}, at(50), true},
		"nothing is kept for days":       {0, []Clock{store(at(48))}, at(48), false},
		"the earliest of three":          {time.Hour, []Clock{store(at(49)), operator(at(48))}, at(48), false},
		"a Pod waited for most of a day": {time.Hour, []Clock{operator(at(26))}, at(26), false},
		"no Pod waits for so long":       {time.Hour, []Clock{operator(at(24))}, at(24), true},
		"waiting sets no clock ahead":    {time.Hour, []Clock{operator(at(52))}, at(50), true},
	} {
		got, said := Policy{Now: at(50), Age: c.age, Count: 3}.ByClocks("this", c.others...)
		if !got.Now.Equal(c.want) || (said != "") != c.said || got.Count != 3 {
			t.Errorf("%s: %s, %q", name, got.Now, said)
		}
	}
}

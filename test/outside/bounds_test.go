package outside

import (
	"strings"
	"testing"
	"time"
)

func TestABoundIsABound(t *testing.T) {
	bound := Bound{Event: "when it rains", Promised: time.Second, Most: 10 * time.Second}
	for name, c := range map[string]struct {
		bound  Bound
		outage time.Duration
		late   bool
	}{
		"as it is promised":        {bound, time.Second, false},
		"on a busy machine":        {bound, 10 * time.Second, false},
		"longer":                   {bound, 10*time.Second + 1, true},
		"as long as it goes on":    {bound.During(time.Minute), 70 * time.Second, false},
		"after it has gone on":     {bound.During(time.Minute), 71 * time.Second, true},
		"the bound stays as it is": {bound, 70 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.bound.Judge(c.outage)
			if (err != nil) != c.late {
				t.Errorf("%s: %v", c.outage, err)
			}
			if err != nil && !strings.Contains(err.Error(), "when it rains") {
				t.Errorf("it does not say what has happened: %v", err)
			}
		})
	}
}

// A bound that is shorter than what is promised fails on an idle machine, and one that is far longer shows nothing.
func TestBoundsAreGenerousAndBounds(t *testing.T) {
	for _, b := range []Bound{
		Undisturbed, HandsOver, Lost, Hangs, MajorityLost, Restarts, SidesChange, OperatorLost, Upgrade, UpgradeBroken,
	} {
		if b.Most < 2*b.Promised || b.Most > max(15*time.Second, 10*b.Promised) {
			t.Errorf("%s: %s is promised, and %s borne", b.Event, b.Promised, b.Most)
		}
	}
}

func TestTheLongestGap(t *testing.T) {
	start := time.Now()
	note := func(g *Gap, milliseconds ...int) {
		for _, ms := range milliseconds {
			g.Note(start.Add(time.Duration(ms) * time.Millisecond))
		}
	}
	var g Gap
	note(&g, 5)
	if g.Longest() != 0 {
		t.Errorf("before the second write, the gap is %s", g.Longest())
	}
	note(&g, 10, 500, 495, 510)
	if g.Longest() != 490*time.Millisecond {
		t.Errorf("the longest gap is %s", g.Longest())
	}
	g.Forget()
	note(&g, 710, 715)
	if g.Longest() != 200*time.Millisecond {
		t.Errorf("the longest gap since then is %s", g.Longest())
	}
}

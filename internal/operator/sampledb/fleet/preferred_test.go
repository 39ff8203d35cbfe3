package fleet

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/window"
	"toban.dev/internal/operator/sampledb/world"
)

// preferring is a SampleDB of three instances in zones a, b and c that has been well for long: x-1 leads, x-0 is
// preferred to it, and it to x-2. The modifiers change that.
func preferring(modify ...func(*preference)) preference {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	p := preference{now: now, primary: "x-1", ready: now.Add(-time.Hour)}
	for i, name := range []string{"x-0", "x-1", "x-2"} {
		p.candidates = append(p.candidates, world.Candidate{Name: name, Rank: i, Ranked: true, About: "zone " +
			"abc"[i:i+1]})
	}
	for _, m := range modify {
		m(&p)
	}
	return p
}

func TestWhenThePrimaryHandsOverToAPreferredInstance(t *testing.T) {
	of := func(i int, change func(*world.Candidate)) func(*preference) {
		return func(p *preference) { change(&p.candidates[i]) }
	}
	leads := func(name string) func(*preference) { return func(p *preference) { p.primary = name } }
	inWindow := func(start string) func(*preference) {
		at, err := window.Parse(nil, start, time.Hour, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		return func(p *preference) { p.policy, p.window = v1.HandOverInWindow, &at }
	}
	unready := of(0, func(c *world.Candidate) { c.Unable = "it is not ready" })
	unranked := func(c *world.Candidate) { c.Ranked = false }
	for name, c := range map[string]struct {
		p            preference
		reason       string
		target, says string
		in           time.Duration // until it may change by itself
	}{
		"it does when all is well": {p: preferring(), reason: v1.ReasonHandingOver, target: "x-0"},
		"not where the preferred one leads": {
			p: preferring(leads("x-0")), reason: v1.ReasonPreferred, says: "no instance is preferred to x-0 (zone a)",
		},
		"not from one whose zone is not known": {
			p: preferring(leads("x-0"), of(0, unranked)), reason: v1.ReasonPreferredUnknown, says: "x-0",
		},
		"not where nobody leads": {p: preferring(leads("")), reason: v1.ReasonPreferredUnknown},
		"not while it is not known whether one is preferred": {
			p: preferring(of(0, unranked)), reason: v1.ReasonPreferredUnknown, says: "the zone of x-0 is not known",
		},
		"one of which it is not known does not matter where it would be avoided": {
			p: preferring(leads("x-0"), of(2, func(c *world.Candidate) {
				c.Rank, c.Ranked = world.Avoided,
					false
			})),
			reason: v1.ReasonPreferred,
		},
		"not to one that is not ready": {
			p: preferring(unready), reason: v1.ReasonPreferredUnready,
			says: "x-0 (zone a) is preferred to x-1 (zone b), and can't take over: it is not ready",
		},
		"but to the next best": {p: preferring(leads("x-2"), unready), reason: v1.ReasonHandingOver, target: "x-1"},
		"from one that is to be avoided": {
			p:      preferring(leads("x-0"), of(0, func(c *world.Candidate) { c.Rank += world.Avoided })),
			reason: v1.ReasonHandingOver, target: "x-1",
		},
		"not without a request where that is wanted": {
			p:      preferring(func(p *preference) { p.policy = v1.HandOverOnRequest }),
			reason: v1.ReasonHandOverOnRequest,
		},
		"not once more while it is under way": {
			p: preferring(func(p *preference) { p.asked = "x-0" }), reason: v1.ReasonHandingOver,
			says: "x-1 is asked for a switchover to x-0",
		},
		"not while not all is well": {
			p: preferring(func(p *preference) { p.unready = "InstancesUnready" }), reason: v1.ReasonHandOverWaits,
			says: "InstancesUnready",
		},
		"not during a backup": {
			p: preferring(func(p *preference) { p.busy = "Job x-1" }), reason: v1.ReasonHandOverWaits, says: "Job x-1",
		},
		"not to one that lacks WAL": {
			p:      preferring(of(0, func(c *world.Candidate) { c.Behind = handOverLag + 1 })),
			reason: v1.ReasonHandOverWaits, in: world.PauseStuck,
		},
		"not to one of which that is not known": {
			p: preferring(of(0, func(c *world.Candidate) { c.Behind = -1 })), reason: v1.ReasonHandOverWaits,
			in: world.PauseStuck,
		},
		"a little less is no matter": {
			p:      preferring(of(0, func(c *world.Candidate) { c.Behind = handOverLag })),
			reason: v1.ReasonHandingOver, target: "x-0",
		},
		"not before all has been well for half a minute": {
			p:      preferring(func(p *preference) { p.ready = p.now.Add(-10 * time.Second) }),
			reason: v1.ReasonHandOverWaits, in: 20 * time.Second, says: "not before 2026-11-25T12:00:20Z",
		},
		"not within an hour after the last switchover": {
			p:      preferring(func(p *preference) { p.last = p.now.Add(-50 * time.Minute) }),
			reason: v1.ReasonHandOverWaits, in: 10 * time.Minute, says: "less than an hour ago",
		},
		"nor after one that was refused, which it says": {
			p:      preferring(func(p *preference) { p.last, p.refused = p.now, "x-0 can't take over" }),
			reason: v1.ReasonHandOverWaits, in: time.Hour, says: "was refused: x-0 can't take over",
		},
		"but after that": {
			p:      preferring(func(p *preference) { p.last = p.now.Add(-handOverRests) }),
			reason: v1.ReasonHandingOver, target: "x-0",
		},
		"in its window": {p: preferring(inWindow("11:30")), reason: v1.ReasonHandingOver, target: "x-0"},
		"not before its window": {
			p: preferring(inWindow("13:00")), reason: v1.ReasonHandOverWaits, in: time.Hour,
			says: "not before 2026-11-25T13:00:00Z: update.window opens then",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decidePreferred(c.p)
			if got.Reason != c.reason || got.target != c.target || !strings.Contains(got.Message, c.says) {
				t.Errorf("got %s to %q: %q; want %s to %q: …%s…",
					got.Reason, got.target, got.Message, c.reason, c.target, c.says)
			}
			if in := got.at.Sub(c.p.now); c.in == 0 && !got.at.IsZero() || c.in != 0 && in != c.in {
				t.Errorf("it is looked at again at %s, want in %s", got.at, c.in)
			}
		})
	}
}

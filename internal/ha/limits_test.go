package ha

import (
	"math"
	"testing"
	"time"
)

func limits(silence, async, preempt, fence, readLease time.Duration) Limits {
	return Limits{Silence: silence, AsyncSilence: async, Preempt: preempt, Fence: fence, ReadLease: readLease}
}

func TestLimitsFitWithThoseOfOtherReleases(t *testing.T) {
	const s = time.Second
	own := Limits{Silence: 4 * s, AsyncSilence: 6 * s, Preempt: 3 * s, Fence: 2 * s, ReadLease: 1 * s}
	slow, quick := limits(9*s, 9*s, 9*s, 8*s, 8*s), limits(1*s, 1*s, 1*s, s/2, s/4)
	for name, c := range map[string]struct {
		others []Limits
		want   Limits
	}{
		"nobody else":           {nil, own},
		"the same release":      {[]Limits{own}, own},
		"one that waits longer": {[]Limits{slow}, limits(9*s, 9*s, 9*s, 2*s, 1*s)},
		"one with slack, which is told apart": {
			[]Limits{slow.WithSlack(8 * s)}, limits(9*s, 9*s, 9*s, 2*s, 1*s),
		},
		"one that gives up sooner": {[]Limits{quick}, limits(4*s, 6*s, 3*s, s/2, s/4)},
		"one of each":              {[]Limits{slow, quick}, limits(9*s, 9*s, 9*s, s/2, s/4)},
		"release 0.1.0 says none": {
			[]Limits{{}}, limits(4*s, 6*s, 3*s, firstLimits.Fence, firstLimits.ReadLease),
		},
		"one that does not say some": {
			[]Limits{{Silence: 9 * s, Fence: 8 * s}}, limits(9*s, 6*s, 3*s, 2*s, firstLimits.ReadLease),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := own
			for _, o := range c.others {
				got = got.With(o)
			}
			if got != c.want {
				t.Errorf("they are %+v, want %+v", got, c.want)
			}
		})
	}
}

// A leader that comes back believes what was said for no longer than the shortest fence.
func TestALeaderComesBackByTheLimitsOfAll(t *testing.T) {
	ago := func(unconfirmed time.Duration) View {
		return three("db-0", primary("db-0", 4), hears("db-1", follower("db-1", 4, "db-0")), local(func(l *Local) {
			l.Server, l.Unconfirmed, l.Limits = ServerStopped, unconfirmed, OwnLimits().With(Limits{Fence: time.Second})
		}))
	}
	check(t, map[string]decided{
		"in time":  {ago(time.Second), Lead, "", "Leader"},
		"too late": {ago(time.Second + 1), Wait, "", "LeaderUnconfirmed"},
	})
}

// What fits in one release fits in every mixture, since each goes by the longest wait and the shortest way on.
func TestWhoWaitsWaitsLongerThanOthersGoOn(t *testing.T) {
	const s = time.Second
	releases := []Limits{
		OwnLimits(), firstLimits, limits(4*s, 6*s, 3*s, 3*s, 2*s), limits(s, 2*s, s/2, s/2, s/4),
		OwnLimits().WithSlack(8 * s),
	}
	for _, waits := range releases {
		for _, goesOn := range releases {
			for _, both := range []struct{ waits, goesOn Limits }{ // both have heard the other, or one has
				{waits.With(goesOn), goesOn.With(waits)}, {waits.With(goesOn), goesOn}, {waits, goesOn.With(waits)},
			} {
				if w, g := both.waits, both.goesOn; w.Silence <= g.Fence || w.AsyncSilence <= g.Fence ||
					w.Preempt <= g.ReadLease {
					t.Errorf("%+v waits, and %+v goes on for longer", w, g)
				}
			}
		}
	}
}

func TestDecisionsGoByTheLimitsOfAll(t *testing.T) {
	const s = time.Second
	long := Limits{Silence: 9 * s, AsyncSilence: 12 * s, Preempt: 3 * s, Fence: s, ReadLease: s / 2}
	silent := func(silence time.Duration, async bool) View {
		v := View{Self: "a-1", Async: async, Local: Local{Limits: long, Silence: silence}}
		v.Local.HardState.Ballot = Ballot{Term: 3, Leader: "a-0"}
		v.Members = []string{"a-0", "a-1"}
		return v
	}
	alone := func(alone, unconfirmed time.Duration) Local {
		return Local{Limits: long, LocalLead: LocalLead{Alone: alone, Unconfirmed: unconfirmed}}
	}
	for name, c := range map[string]struct{ got, want bool }{
		"a leader is silent for as long as another release's goes on": {silent(9*s, false).LeaderLost(), false},
		"a leader is silent for longer":                               {silent(9*s+1, false).LeaderLost(), true},
		"in async it may be silent for longer":                        {silent(12*s, true).LeaderLost(), false},
		"in async too, in the end":                                    {silent(12*s+1, true).LeaderLost(), true},
		"a leader without a majority goes on for a while":             {alone(s, math.MaxInt64).MayServe(), true},
		"a leader goes on no longer than another release waits":       {alone(s+1, math.MaxInt64).MayServe(), false},
		"nor by the witness's word":                                   {alone(math.MaxInt64, s/2+1).MayServe(), false},
		"by the witness's word it goes on for a while":                {alone(math.MaxInt64, s/2).MayServe(), true},
	} {
		if c.got != c.want {
			t.Errorf("%s: it is %v", name, c.got)
		}
	}
}

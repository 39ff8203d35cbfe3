package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// A server may end before it is taken in that it has started, because that waits for the disk. It is started again
// then, and not taken to run for ever.
func TestAServerThatEndsBeforeItsStartIsTakenIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-1.b", 4, "db-0"))
	r.others(asIs)
	r.wanted = nil
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == StartStandby }
	r.step(ServerEnded{Run: r.server.run, Why: "killed"})
	starts := wants[Command](r)
	r.wanted = nil
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	next := r.HardState().Configuration
	next.Version++
	r.step(ConfigurationProposed{ID: 70, Proposal: Proposal{Leader: "db-0", Voter: "db-1.b", Configuration: next}})
	stores := wants[Store](r)
	if len(starts) != 1 || starts[0].Kind != StartStandby || len(stores) != 1 {
		t.Fatalf("it starts %+v and writes %+v", starts, stores)
	}
	r.step(Done{ID: starts[0].ID})
	r.step(ServerEnded{Run: starts[0].ID, Why: "killed"})
	r.wanted, r.holds = nil, func(Effect) bool { return false }
	r.step(Stored{ID: stores[0].ID})
	for range 10 {
		r.pass(time.Second)
		r.others(asIs)
	}
	if !r.commanded(StartStandby) {
		t.Errorf("it does not start the server again: %s", r.Instance)
	}
}

// pg_rewind goes by timelines, and two leaders may have chosen the same. Where it finds nothing to do, and the WAL has
// parted nevertheless, the data is copied anew.
func TestARewindThatChangesNothing(t *testing.T) {
	t.Parallel()
	r := standby(t)
	done := r.done
	r.done = func(c Command) Done {
		d := done(c)
		if c.Kind == Rewind {
			d.TermHistory = r.HardState().TermHistory
		}
		return d
	}
	r.wanted = nil
	for range 5 {
		r.other("db-0.a", func(p *ha.Peer) {
			p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 5, Leader: "db-0"}, true, false
			p.TermHistory = append(p.TermHistory, ha.TermStart{Term: 5, LSN: 50, Timeline: 2})
		})
		r.step(ServerSeen{Run: r.server.run, Answers: true, End: 100, Known: true})
		r.pass(100 * time.Millisecond)
	}
	if !r.commanded(Rewind) || !r.commanded(Clone) {
		t.Errorf("it neither rewinds nor copies: %+v, %s", wants[Command](r), r.Instance)
	}
}

// A rewind that comes before the leader's first checkpoint changes nothing, so that the next try needs no server that
// is started only to be stopped.
func TestARewindThatComesEarlyIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := rewinds(t, standby(t), 4, Done{Err: "the source's control file names the same timeline", SameTimeline: true})
	if r.commanded(StartStandby) || r.commanded(Clone) {
		t.Errorf("%+v, %s", wants[Command](r), r.Instance)
	}
}

// One that does not reach the leader is tried again too, ever less often and for as long as it takes: a copy would not
// reach it either, and would move all the data.
func TestARewindThatDoesNotReachTheLeaderIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := standby(t)
	began := r.now
	r = rewinds(t, r, 12, Done{Err: "the source was not reached", Unreached: true})
	if r.commanded(Clone) || r.commanded(StartStandby) || r.now-began < ha.StuckLimit {
		t.Errorf("after %s of rewinds, all its data is copied: %t, its server is started: %t",
			r.now-began, r.commanded(Clone), r.commanded(StartStandby))
	}
}

// rewinds has a standby part from its leader, and its rewind end as it says, so many times.
func rewinds(t *testing.T, r *rig, times int, as Done) *rig {
	t.Helper()
	done := r.done
	r.done = func(c Command) Done {
		if c.Kind == Rewind && times > 0 {
			times--
			return as
		}
		return done(c)
	}
	r.wanted = nil
	for began := r.now; r.now < began+5*time.Minute && times > 0; {
		r.other("db-0.a", func(p *ha.Peer) {
			p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 5, Leader: "db-0"}, true, false
			p.TermHistory = append(p.TermHistory, ha.TermStart{Term: 5, LSN: 50, Timeline: 2})
		})
		r.step(ServerSeen{Run: r.server.run, Answers: r.server.role == ha.ServerStandby, End: 100, Known: true})
		r.pass(50 * time.Millisecond)
	}
	if times > 0 {
		t.Errorf("%d tries are left, %+v, %s", times, wants[Command](r), r.Instance)
	}
	return r
}

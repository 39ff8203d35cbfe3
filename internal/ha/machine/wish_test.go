package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// leaving is the rig of a leader that was told to stop, has stopped its server, and has promised the next term to db-1.
func leaving(t *testing.T) *rig {
	t.Helper()
	r := served(t)
	r.step(LeaveAsked{})
	if r.server.role != ha.ServerStopped || !r.Peer().Resigned {
		t.Fatalf("it does not hand over: %s", r)
	}
	r.step(VoteAsked{ID: 1, Request: ha.VoteRequest{
		Term: 5, Candidate: voters[1], Voter: voters[0], Position: ha.Position{Term: 4, LSN: 100}, Resigned: 4,
	}})
	votes := wants[ReplyVote](r)
	if len(votes) != 1 || !votes[0].Reply.Granted {
		t.Fatalf("it does not vote: %+v", votes)
	}
	return r
}

// Who leads no more, and has voted for another, is needed until that one leads: it may be told to stop before.
func TestAFormerLeaderThatIsToldToStopWaitsUntilAnotherLeads(t *testing.T) {
	t.Parallel()
	stands := func(p *ha.Peer) { p.Leading, p.Eligible, p.LeaderLost = false, true, true }
	leaves := func(p *ha.Peer) { stands(p); p.Eligible = false }
	leads := func(p *ha.Peer) { stands(p); p.Leading, p.LeaderLost = true, false }
	for name, c := range map[string]struct {
		says func(*ha.Peer)
		want Ending
		// from and to are when it ends after it was told to, at the earliest and at the latest.
		from, to time.Duration
	}{
		"another leads":                       {leads, Succeeded, 0, 0},
		"the others are told to stop too":     {leaves, Alone, aloneAfter, aloneAfter + 2*tickInterval},
		"who was elected does not lead":       {stands, WaitedInVain, leavePatience, leavePatience + 2*tickInterval},
		"the others are told to stop and off": {nil, Alone, recently - tickInterval, recently + 2*tickInterval},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := leaving(t)
			if e := r.Ending(); e != "" {
				t.Fatalf("it ends as soon as it has voted: %s", e)
			}
			for began := r.now; ; r.pass(50 * time.Millisecond) {
				if c.says != nil {
					r.other(voters[1], c.says)
				}
				e, after := r.Ending(), r.now-began
				if e != "" && (e != c.want || after < c.from) || e == "" && after > c.to {
					t.Fatalf("after %s it ends by %q", after, e)
				}
				if e != "" {
					break
				}
			}
			if r.server.role != ha.ServerStopped {
				t.Errorf("it has started its server again: %s", r)
			}
		})
	}
}

// A primary that is told to stop ends in order, before the fence ends its server at once.
func TestALeaderThatIsToldToStopAndHearsNobodyEndsBeforeTheFence(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.away = true
	r.others(func(p *ha.Peer) { p.Eligible = false })
	r.step(LeaveAsked{})
	r.pass(unheardAfter / 2)
	if e := r.Ending(); e != "" {
		t.Fatalf("it ends at once: %s", e)
	}
	for r.Ending() == "" && len(wants[Fence](r)) == 0 {
		r.pass(50 * time.Millisecond)
	}
	if e := r.Ending(); e != Unheard || len(wants[Fence](r)) > 0 {
		t.Errorf("it ends by %q, fenced %v", e, wants[Fence](r))
	}
}

// An orderly stop is waited for, however long it takes: cut short, it leaves WAL whose end nobody knows.
func TestALeaderThatIsToldToStopIsNotCutShortWhileItsServerStops(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Stop }
	r.step(LeaveAsked{})
	if !r.commanded(Stop) {
		t.Fatalf("it does not stop its server: %s", r)
	}
	for range 40 {
		r.others(func(p *ha.Peer) { p.Eligible = false })
		if r.pass(250 * time.Millisecond); r.Ending() != "" {
			t.Fatalf("it ends by %q while its server stops", r.Ending())
		}
	}
	stops := wants[Command](r)
	r.step(Done{ID: stops[len(stops)-1].ID, End: 100})
	if e := r.Ending(); e != Alone {
		t.Errorf("when it has stopped, it ends by %q", e)
	}
}

func TestAStandbyThatIsToldToStopEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-1.b", 4, "db-0"))
	r.others(asIs)
	if e := r.Ending(); e != "" {
		t.Fatalf("it ends by %q", e)
	}
	if r.step(LeaveAsked{}); r.Ending() != NotLeading {
		t.Errorf("it ends by %q: %s", r.Ending(), r)
	}
}

// A restart that is asked for while a leader hands over is not forgotten where the others can't take over in the end.
func TestARestartOutlivesAHandOverThatIsTakenBack(t *testing.T) {
	t.Parallel()
	r := served(t)
	checkpoint := r.hold(Checkpoint)
	r.wish.restartServer = true
	r.step(ResignAsked{})
	if *checkpoint == nil {
		t.Fatalf("it does not hand over: %s", r)
	}
	r.others(func(p *ha.Peer) { p.Eligible = false })
	r.carryOut(*checkpoint)
	r.others(func(p *ha.Peer) { p.Eligible = false })
	if !r.commanded(Stop) || r.Peer().Resigned {
		t.Errorf("the server was not restarted: %s", r)
	}
}

// A restart that waits for a successor is made in place in the end, also where a switchover was asked for meanwhile.
// That one is refused.
func TestARestartOutlivesASwitchoverThatIsInVain(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"", "db-1"} {
		r := served(t)
		r.others(func(p *ha.Peer) { p.Eligible = false })
		r.step(ResignAsked{Restart: true})
		r.step(ResignAsked{To: to})
		for range 50 {
			r.others(func(p *ha.Peer) { p.Eligible = false })
			if r.pass(250 * time.Millisecond); r.commanded(Stop) {
				break
			}
		}
		if !r.commanded(Stop) || r.Peer().Resigned || (r.WishRefused() != "") != (to != "") {
			t.Errorf("to %q: it was not restarted in place, or says %q: %s", to, r.WishRefused(), r)
		}
	}
}

// A hand-over that is asked for during the checkpoint before a restart is made: the restart would pass for it.
func TestAHandOverIsNotTakenForARestart(t *testing.T) {
	t.Parallel()
	r := served(t)
	checkpoint := r.hold(Checkpoint)
	r.step(RestartAsked{})
	r.step(ResignAsked{})
	if *checkpoint == nil || r.commanded(Stop) {
		t.Fatalf("it does not restart: %s", r)
	}
	r.carryOut(*checkpoint)
	if !r.Peer().Resigned {
		t.Errorf("it has not handed over: %s", r)
	}
}

// A checkpoint may take long where disks are busy. What was begun by it counts as granted, and not as in vain.
func TestAHandOverThatHasBegunIsNotGivenUp(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		r := served(t)
		checkpoint := r.hold(Checkpoint)
		r.step(ResignAsked{Restart: restart})
		for range 60 {
			r.others(asIs)
			r.pass(250 * time.Millisecond)
		}
		r.carryOut(*checkpoint)
		if !r.Peer().Resigned || r.WishRefused() != "" {
			t.Errorf("with restart %v it has not handed over (%q): %s", restart, r.WishRefused(), r)
		}
	}
}

package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// promoted is the last promotion that was asked for.
func promoted(r *rig) Command {
	r.Helper()
	var last Command
	for _, c := range wants[Command](r) {
		if c.Kind == Promote {
			last = c
		}
	}
	if last.ID == 0 {
		r.Fatalf("it is not promoted: %s", r.Instance)
	}
	return last
}

// begun is the last entry of a term history.
func begun(m ha.HardState) ha.TermStart { return m.TermHistory[len(m.TermHistory)-1] }

// A disk that does not take where the new timeline begins is asked again. Nobody follows before, and the server is not
// promoted twice.
func TestATimelineThatIsNotWrittenIsWrittenAgain(t *testing.T) {
	t.Parallel()
	r := elected(t)
	stores := func() []Store { return wants[Store](r) }
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	promotion := promoted(r)
	r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
	for n := range 3 {
		tries := len(stores())
		r.step(Stored{ID: stores()[tries-1].ID, Err: "no space left on device"})
		if r.Peer().Leading || n > 0 && r.Trouble() == "" {
			t.Fatalf("it leads: %v, and the trouble is %q", r.Peer().Leading, r.Trouble())
		}
		for range 20 {
			if len(stores()) > tries {
				break
			}
			r.others(func(p *ha.Peer) { p.LeaderLost, p.Eligible = false, false })
			r.pass(250 * time.Millisecond)
		}
		if want := (ha.TermStart{Term: 5, LSN: 100, Timeline: 2}); len(stores()) != tries+1 ||
			begun(stores()[tries].HardState) != want {
			t.Fatalf("it is not written again: %s", r.Instance)
		}
	}
	r.step(Stored{ID: stores()[len(stores())-1].ID})
	if !r.Peer().Leading || r.Trouble() != "" || begun(r.HardState()).Timeline != 2 {
		t.Errorf("when it is written: trouble %q: %s", r.Trouble(), r.Instance)
	}
	if promoted(r).ID != promotion.ID || len(wants[Fence](r)) > 0 || len(wants[AskVote](r)) > 4 {
		t.Errorf("it has not gone on with the server that it has: %+v", wants[Command](r))
	}
}

// A promotion that fails may have happened. The server is ended, and promoted again in its term when a majority says
// that it still may be; nobody follows before where its WAL begins is on disk.
func TestAPromotionThatFailsIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := elected(t)
	first := promoted(r)
	r.step(Done{ID: first.ID, Err: "it is not known where the new timeline begins"})
	if len(wants[Fence](r)) != 1 || r.Peer().Leading {
		t.Fatalf("it is not ended: %s", r.Instance)
	}
	for range 40 {
		r.others(func(p *ha.Peer) { p.LeaderLost, p.Eligible = false, false })
		if p := r.currentPoll(); p != nil && p.request.Confirm {
			break
		}
		r.pass(50 * time.Millisecond)
	}
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	second := promoted(r)
	if second.ID == first.ID || r.Peer().Leading {
		t.Fatalf("it is not promoted again: %s", r.Instance)
	}
	r.step(Done{ID: second.ID, Timeline: 3, Begins: 100})
	if want := (ha.TermStart{Term: 5, LSN: 100, Timeline: 3}); begun(r.HardState()) != want ||
		!r.Peer().Leading || r.Trouble() != "" {
		t.Errorf("its term history is %v: %s", r.HardState().TermHistory, r.Instance)
	}
}

// A trouble that is over is none any more, also where the same is decided as before.
func TestTroubleEndsWhenItIsOver(t *testing.T) {
	t.Parallel()
	fails := true
	r := newRig(t, memoryOf("db-1.b", 4, "db-0"))
	r.done = func(c Command) Done {
		if fails && c.Kind == Follow {
			return Done{Err: "the configuration could not be written"}
		}
		return Done{}
	}
	r.others(asIs)
	if r.Trouble() == "" {
		t.Fatalf("there is no trouble: %s", r.Instance)
	}
	fails = false
	for range 8 {
		r.others(asIs)
		r.pass(250 * time.Millisecond)
	}
	if r.Decision().Action != ha.Follow || r.server.following.Leader != "db-0" || r.Trouble() != "" {
		t.Errorf("the trouble is %q: %s", r.Trouble(), r.Instance)
	}
}

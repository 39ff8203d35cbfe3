package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// Whatever is being done or written, a primary that may not serve any more is ended in the same step.
func TestTheFenceWaitsForNothing(t *testing.T) {
	t.Parallel()
	never := func(Effect) bool { return true }
	isolate := func(r *rig) { r.away = true; r.pass(2 * time.Second) }
	overtaken := func(r *rig) {
		r.other("db-1.b", func(p *ha.Peer) { p.Ballot, p.Leading = ha.Ballot{Term: 9, Leader: "db-1"}, true })
	}
	for name, c := range map[string]struct {
		before, then func(*rig)
	}{
		"nothing is being done": {func(*rig) {}, isolate},
		"a checkpoint before it resigns": {func(r *rig) {
			r.holds = never
			r.step(ResignAsked{})
			if !r.commanded(Checkpoint) {
				t.Error("it does not resign")
			}
		}, isolate},
		"its hard state is being written": {func(r *rig) {
			r.holds = never
			r.step(ConfigurationProposed{
				ID: 1, Proposal: Proposal{Leader: "db-0", Voter: "db-0.a", Configuration: ha.Configuration{
					Term: 4, Version: 9, Now: r.HardState().Configuration.Now,
				}},
			})
			if r.storing == nil {
				t.Error("it writes nothing")
			}
		}, isolate},
		"the rule is being changed": {func(r *rig) {
			r.holds = never
			r.step(Configured{
				Config: Config{Members: []string{"db-0", "db-1", "db-2"}, SystemIdentifier: "7", Async: true},
			})
			r.pass(time.Second)
		}, isolate},
		"the witness is asked":          {func(r *rig) { r.holds = never; r.pass(time.Second) }, isolate},
		"another leads by now":          {func(*rig) {}, overtaken},
		"another leads, and disk hangs": {func(r *rig) { r.holds = never }, overtaken},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := served(t)
			c.before(r)
			r.wanted = nil
			c.then(r)
			if len(wants[Fence](r)) == 0 {
				t.Fatalf("it is not fenced: %s", r.Instance)
			}
			for _, effect := range r.wanted {
				if _, stores := effect.(Store); stores {
					t.Error("something is stored first")
				}
				if _, fences := effect.(Fence); fences {
					break
				}
			}
		})
	}
}

// A server that can't be ended, because it waits for a disk, is ended again and again. Nothing else
// is done with it meanwhile.
func TestAFenceThatFailsIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(effect Effect) bool { _, fences := effect.(Fence); return fences }
	r.away = true
	r.pass(2 * time.Second)
	for failed := range 3 {
		fences := wants[Fence](r)
		if len(fences) != failed+1 {
			t.Fatalf("there are %d fences after %d that failed", len(fences), failed)
		}
		r.step(Done{ID: fences[failed].ID, Err: "it waits for its disk"})
	}
	before := len(wants[Command](r))
	r.pass(time.Second)
	if commands := wants[Command](r); len(commands) > before {
		t.Errorf("the server may still run, and this is begun: %s", commands[before].Kind)
	}
	r.step(Done{ID: wants[Fence](r)[3].ID})
	if !r.free() {
		t.Errorf("nothing can be begun after the fence: %s", r.Instance)
	}
}

// What comes late of a command that a fence has ended changes nothing.
func TestALateEndOfACommandIsIgnored(t *testing.T) {
	t.Parallel()
	r := elected(t)
	promotion := wants[Command](r)[len(wants[Command](r))-1]
	if promotion.Kind != Promote {
		t.Fatalf("it is not promoted, but %s", promotion.Kind)
	}
	r.away = true
	r.pass(2 * time.Second)
	if len(wants[Fence](r)) != 1 {
		t.Fatalf("it is not fenced: %s", r.Instance)
	}
	r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
	if r.server.role == ha.ServerPrimary || r.Peer().Leading {
		t.Errorf("it leads: %s", r.Instance)
	}
}

// elected is a standby that has won term 5 and is being promoted, which does not come to its end.
func elected(t *testing.T) *rig {
	t.Helper()
	r := standby(t)
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Promote }
	r.others(func(p *ha.Peer) { p.Resigned = p.Leading; p.Leading = false; p.LeaderLost = true; p.Eligible = false })
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot}) // the pre-vote
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	return r
}

// standby is db-1, which follows db-0.
func standby(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, memoryOf("db-1.b", 4, "db-0"))
	r.others(asIs)
	if r.server.following.Leader != "db-0" {
		t.Fatalf("it does not follow: %s", r)
	}
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Streaming: true, Received: 100})
	return r
}

// PostgreSQL may go on with a promotion that has failed by itself.
func TestAPromotionThatFailsIsFenced(t *testing.T) {
	t.Parallel()
	r := elected(t)
	promotion := wants[Command](r)[len(wants[Command](r))-1]
	r.step(Done{ID: promotion.ID, Err: "it takes too long"})
	if len(wants[Fence](r)) != 1 {
		t.Errorf("it is not fenced: %s", r.Instance)
	}
}

func TestAServerThatNobodyHasElectedIsEndedAndDisowned(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Unelected: true})
	if len(wants[Fence](r)) != 1 || !r.commanded(MarkForked) {
		t.Errorf("it goes on: %s", r.Instance)
	}
}

// That it resigns is said when no server runs any more: who hears it elects at once.
func TestALeaderResignsWhenItsServerHasEnded(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(e Effect) bool { _, is := e.(Fence); return is }
	r.others(asIs)
	r.step(ServerSeen{Run: r.server.run, Answers: true, Failure: "it hangs"})
	fences := wants[Fence](r)
	if len(fences) != 1 || r.Peer().Resigned || r.Peer().Leading {
		t.Fatalf("before it has ended: %+v", r.Peer())
	}
	r.step(Done{ID: fences[0].ID})
	if !r.Peer().Resigned {
		t.Errorf("after it: %s", r.Instance)
	}
}

// What hangs on a disk may take longer to end than is waited for: it is ended again, and what was to follow still does.
func TestAFenceThatDoesNotComeToItsEndIsBegunAgain(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(e Effect) bool { _, is := e.(Fence); return is }
	r.others(asIs)
	r.step(ServerSeen{Run: r.server.run, Answers: true, Failure: "it hangs"})
	for range 3 {
		fences := wants[Fence](r)
		r.step(Done{ID: fences[len(fences)-1].ID, Err: "processes of the server do not end"})
	}
	fences := wants[Fence](r)
	if len(fences) != 4 || r.Peer().Resigned {
		t.Fatalf("it has tried %d times: %s", len(fences), r.Instance)
	}
	r.step(Done{ID: fences[3].ID})
	if !r.Peer().Resigned {
		t.Errorf("it goes on as leader: %s", r.Instance)
	}
}

// A voter that has lost the leader may be giving its vote to another: its word does not keep the leader going.
func TestAVoterThatHasLostTheLeaderDoesNotSupportIt(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.away = true
	for range 20 {
		r.others(func(p *ha.Peer) { p.LeaderLost = true })
		r.pass(100 * time.Millisecond)
	}
	if len(wants[Fence](r)) == 0 {
		t.Errorf("it goes on: %s", r.Instance)
	}
}

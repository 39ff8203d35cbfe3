package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

const stalled = ha.StallLimit + 100*time.Millisecond

// onFrozenDisk has nothing get on disk, and no process end that waits for it.
func onFrozenDisk(e Effect) bool {
	switch e.(type) {
	case Store, Fence, Command:
		return true
	}
	return false
}

// Others hear that a leader has resigned as soon as nothing of its server can answer anybody: processes that wait for
// the disk end when that goes on, which may be never.
func TestALeaderOnAVolumeThatStallsResignsBeforeItsProcessesHaveEnded(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = onFrozenDisk
	r.others(asIs)
	r.step(VolumeSeen{Unwritten: ha.StallLimit})
	if len(wants[Fence](r)) != 0 || !r.Peer().Leading {
		t.Fatalf("a busy disk deposes it: %s", r.Instance)
	}
	r.step(VolumeSeen{Unwritten: stalled})
	fences := wants[Fence](r)
	if len(fences) != 1 || r.Decision().Reason != "ServerFailed" || r.Peer().Resigned || r.Peer().Leading {
		t.Fatalf("before it is killed: %+v: %s", r.Peer(), r.Instance)
	}
	r.step(Killed{ID: fences[0].ID + 1})
	if r.Peer().Resigned {
		t.Error("it resigns on word of another fence")
	}
	r.step(Killed{ID: fences[0].ID})
	if !r.Peer().Resigned {
		t.Fatalf("when it is killed: %s", r.Instance)
	}
	// That stays so, and nothing is done with the data meanwhile.
	r.others(asIs)
	r.pass(2 * ha.IdleLimit)
	if !r.Peer().Resigned {
		t.Errorf("it takes that back: %s", r.Instance)
	}
	r.other("db-1.b", func(p *ha.Peer) { p.Ballot, p.Leading = ha.Ballot{Term: 5, Leader: "db-1"}, true })
	r.pass(10 * time.Second)
	if commands := wants[Command](r); commands[len(commands)-1].Kind != Open {
		t.Errorf("it begins to %s: %s", commands[len(commands)-1].Kind, r.Instance)
	}
	r.holds = func(Effect) bool { return false }
	r.step(VolumeSeen{})
	r.step(Done{ID: fences[0].ID})
	r.other("db-1.b", func(p *ha.Peer) { p.Ballot, p.Leading = ha.Ballot{Term: 5, Leader: "db-1"}, true })
	r.pass(time.Second)
	if r.HardState().Ballot.Leader != "db-1" || r.server.role != ha.ServerStandby {
		t.Errorf("it does not follow: %s", r.Instance)
	}
}

func TestALeaderOnAVolumeThatStallsGoesOnWhileNobodyCouldTakeOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ha.Peer){
		"their volumes stall, too":        func(p *ha.Peer) { p.Stalls, p.Eligible = true, false },
		"their volumes are about to":      func(p *ha.Peer) { p.Eligible = false },
		"one could, the other can't vote": func(p *ha.Peer) { p.Stalls = p.Voter == "db-2.c"; p.Eligible = !p.Stalls },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := served(t)
			r.others(change)
			r.step(VolumeSeen{Unwritten: stalled})
			if len(wants[Fence](r)) != 0 || !r.Peer().Leading {
				t.Errorf("it is ended: %s", r.Instance)
			}
		})
	}
}

func TestAStandbySaysThatItsVolumeStalls(t *testing.T) {
	t.Parallel()
	r := standby(t)
	told := func(unwritten time.Duration, eligible, stalls bool) {
		t.Helper()
		r.wanted = nil
		r.step(VolumeSeen{Unwritten: unwritten})
		if p := r.Peer(); p.Eligible != eligible || p.Stalls != stalls || len(wants[Broadcast](r)) != 1 {
			t.Errorf("after %s it is %+v, told %d times", unwritten, p, len(wants[Broadcast](r)))
		}
	}
	told(ha.SlowLimit+1, false, false)
	told(ha.StallLimit+1, false, true)
	told(0, true, false)
}

// A standby that can't write can't stream either: that is no reason for a new copy, also after it.
func TestAStandbyIsNotCopiedAnewForAVolumeThatStalled(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.step(VolumeSeen{Unwritten: stalled})
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Received: 100})
	for range 120 {
		r.others(asIs)
		r.pass(time.Second)
	}
	r.step(VolumeSeen{})
	r.others(asIs)
	if r.commanded(Clone) || r.commanded(Cut) {
		t.Errorf("it is copied anew: %s", r.Instance)
	}
}

// pairOf is the rig of a leader of two, and the witness.
func pairOf(t *testing.T) *rig {
	t.Helper()
	m := memoryOf("db-0.a", 4, "db-0")
	m.Configuration.Now = ha.Quorum{Voters: voters[:2], Witness: "uid", Acknowledgements: 2}
	r := newRig(t, m)
	r.api = ha.HardState{Voter: "uid", Ballot: m.Ballot, Configuration: m.Configuration}
	members := []string{"db-0", "db-1"}
	r.step(Configured{Config: Config{Members: members, SystemIdentifier: "7", Witness: "uid", API: true}})
	r.other("db-1.b", asIs)
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	if p := r.currentPoll(); p != nil {
		r.step(VoteAnswered{Round: p.round, Voter: "db-1.b", Reply: ha.VoteReply{Granted: true, Ballot: m.Ballot}})
	}
	return r
}

// Whether the other of two could be elected depends on the witness: it is looked at before the volume stalls for good.
func TestOfTwoALeaderOnAVolumeThatStallsMakesWay(t *testing.T) {
	t.Parallel()
	r := pairOf(t)
	for waited := time.Duration(0); waited <= stalled; waited += 100 * time.Millisecond {
		r.other("db-1.b", asIs)
		r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: voters[1:2]})
		r.step(VolumeSeen{Unwritten: waited})
		if ended := len(wants[Fence](r)) > 0; ended != (waited > ha.StallLimit) {
			t.Fatalf("after %s it is ended: %v: %s", waited, ended, r.Instance)
		}
		r.pass(100 * time.Millisecond)
	}
}

// Of two, the one that is left goes on alone when the other's volume stalls, though that answers and seems to stream,
// and takes it back when it goes on.
func TestOfTwoTheOtherOnAVolumeThatStallsDoesNotCount(t *testing.T) {
	t.Parallel()
	r := pairOf(t)
	hear := func(stalls bool) {
		for range 20 {
			r.other("db-1.b", func(p *ha.Peer) { p.Stalls, p.Eligible = stalls, !stalls })
			r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: voters[1:2]})
			for _, p := range wants[Propose](r) {
				if !stalls {
					r.step(ConfigurationAnswered{
						Voter: p.Proposal.Voter, Configuration: p.Proposal.Configuration,
						Reply: ha.AcceptReply{Accepted: true},
					})
				}
			}
			r.pass(50 * time.Millisecond)
		}
	}
	hear(false)
	if now := r.HardState().Configuration.Now; !r.server.open || now.Acknowledgements != 2 {
		t.Fatalf("with two the quorum is %s: %s", now, r.Instance)
	}
	hear(true)
	if now := r.HardState().Configuration.Now; now.Acknowledgements != 1 || len(now.Voters) != 1 {
		t.Errorf("while the other's volume stalls the quorum is %s: %s", now, r.Instance)
	}
	hear(false)
	if now := r.HardState().Configuration.Now; now.Acknowledgements != 2 || len(now.Voters) != 2 {
		t.Errorf("when it goes on the quorum is %s: %s", now, r.Instance)
	}
}

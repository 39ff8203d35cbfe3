package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// weakened is the rig of one of two instances which goes on alone, and the other's status when it is back.
func weakened(t *testing.T) (*rig, PeerStatus) {
	t.Helper()
	m := memoryOf("db-0.a", 4, "db-0")
	m.Configuration.Now = ha.Quorum{Voters: voters[:1], Acknowledgements: 1}
	r := newRig(t, m)
	r.step(Configured{
		Config: Config{Members: []string{"db-0", "db-1"}, SystemIdentifier: "7", Witness: "uid", API: true},
	})
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	r.pass(time.Second)
	if !r.server.open || r.server.role != ha.ServerPrimary {
		t.Fatalf("it does not serve: %s", r)
	}
	back := PeerStatus{Name: "db-1", Boot: "2", Number: 1, Peer: ha.Peer{
		Voter: "db-1.b", Data: ha.DataPresent, SystemIdentifier: "7", Ballot: r.HardState().Ballot, Streaming: true,
		TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}}, Position: ha.Position{Term: 4, LSN: 90},
		Eligible: true,
	}}
	return r, back
}

// streams has the leader see that the other one streams from it.
func (r *rig) streams() {
	r.Helper()
	r.step(ServerSeen{Run: r.server.run, Answers: true, Standbys: voters[1:2]})
}

// admitted says whether the other one has a vote, or gets one.
func (r *rig) admitted() bool { return len(r.HardState().Configuration.Voters()) == 2 }

// A leader that goes on alone counts the other one again when it has an answer of it: by its word and the stream alone
// the leader would be without a majority at once, and would have to stop.
func TestOneThatComesBackCountsWhenItHasAnswered(t *testing.T) {
	t.Parallel()
	answers := func(after, silence time.Duration) func(*rig, PeerStatus) {
		return func(r *rig, s PeerStatus) {
			s.Silence = silence
			r.step(PeerAnswered{Status: s, Asked: r.now - after})
		}
	}
	for name, c := range map[string]struct {
		says   func(*rig, PeerStatus)
		counts bool
	}{
		"it answers":                  {answers(10*time.Millisecond, 0), true},
		"it only says so itself":      {func(r *rig, s PeerStatus) { r.step(PeerAnnounced{s}) }, false},
		"its answer took very long":   {answers(1500*time.Millisecond, 0), false},
		"it has not heard the leader": {answers(10*time.Millisecond, 1500*time.Millisecond), false},
		"it has lost the leader": {func(r *rig, s PeerStatus) {
			s.Peer.LeaderLost = true
			r.step(PeerAnswered{Status: s, Asked: r.now})
		}, false},
		"it answered in another term": {func(r *rig, s PeerStatus) {
			s.Peer.Ballot.Term = 3
			r.step(PeerAnswered{Status: s, Asked: r.now})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, back := weakened(t)
			c.says(r, back)
			r.streams()
			r.step(Tick{})
			if len(wants[Fence](r)) > 0 {
				t.Fatalf("it stops: %s", r.Instance)
			}
			if r.admitted() != c.counts {
				t.Errorf("it counts: %v", r.admitted())
			}
		})
	}
}

// Before a change is on record, all WAL must be where the next quorum looks for it, which may take long. If the other
// one is not heard any more by then, the change is put off, and made when it is heard again.
func TestOneThatFallsSilentBeforeItCountsIsPutOff(t *testing.T) {
	t.Parallel()
	r, back := weakened(t)
	r.holds = func(e Effect) bool { d, is := e.(Demand); return is && d.Barrier }
	r.step(PeerAnswered{Status: back, Asked: r.now})
	r.streams()
	demands := wants[Demand](r)
	if len(demands) == 0 || !demands[len(demands)-1].Barrier {
		t.Fatalf("it begins no change: %+v", r.wanted)
	}
	r.pass(2 * time.Second)
	r.holds = func(Effect) bool { return false }
	r.step(Done{ID: demands[len(demands)-1].ID})
	if r.admitted() || len(wants[Fence](r)) > 0 {
		t.Fatalf("it is on record: %v, it stops: %v", r.admitted(), len(wants[Fence](r)) > 0)
	}
	if rule := r.server.rule; rule.Count != 0 {
		t.Errorf("commits wait for %s", rule)
	}
	back.Number++
	r.step(PeerAnswered{Status: back, Asked: r.now})
	r.pass(2 * changeRest)
	if !r.admitted() || len(wants[Fence](r)) > 0 {
		t.Errorf("when it is heard again: %s", r.Instance)
	}
}

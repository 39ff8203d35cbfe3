package machine

import (
	"testing"

	"toban.dev/internal/ha"
)

// A leader that comes back starts its server closed. It asks the others whether it still leads, then has its WAL
// acknowledged, and then lets clients in.
func TestALeaderThatComesBackIsConfirmedAndProvenFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-0.a", 4, "db-0"))
	r.holds = func(e Effect) bool { _, is := e.(Demand); return is }
	r.others(asIs)
	started := wants[Command](r)
	if len(started) == 0 || started[0].Kind != StartPrimary || !started[0].Closed {
		t.Fatalf("it begins with %+v", started)
	}
	if len(wants[AskVote](r)) > 0 {
		t.Error("it asks before its server answers")
	}
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	for _, ask := range wants[AskVote](r) {
		if !ask.Request.Confirm {
			t.Errorf("it asks for %+v", ask.Request)
		}
	}
	if r.Peer().Leading {
		t.Error("it leads before it is confirmed")
	}
	r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	if !r.Peer().Leading {
		t.Error("nobody follows it: its WAL can't be proven")
	}
	demands := wants[Demand](r)
	if len(demands) != 1 || !demands[0].Barrier || r.commanded(Open) || len(wants[Publish](r)) > 0 {
		t.Fatalf("before its WAL is proven it wants %+v", r.wanted)
	}
	r.holds = func(Effect) bool { return false }
	r.step(Done{ID: demands[0].ID})
	if !r.commanded(Open) || len(wants[Publish](r)) == 0 {
		t.Errorf("it stays closed: %s", r.Instance)
	}
	r.opensInTime(t)
}

// opensInTime checks that a server which is being opened must not be when the majority's word is too old.
func (r *rig) opensInTime(t *testing.T) {
	t.Helper()
	commands := wants[Command](r)
	if until := commands[len(commands)-1].Until; until <= r.now || until > r.now+r.limits().Fence {
		t.Errorf("at %s it lets clients in until %s", r.now, until)
	}
}

func TestALeaderThatIsNotConfirmedIsEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-0.a", 4, "db-0"))
	r.others(asIs)
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	for range 30 {
		r.others(asIs)
		r.pass(100_000_000)
	}
	if len(wants[Fence](r)) == 0 || r.commanded(Open) {
		t.Errorf("it goes on: %s", r.Instance)
	}
}

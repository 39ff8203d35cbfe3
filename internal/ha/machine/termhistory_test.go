package machine

import (
	"testing"

	"toban.dev/internal/ha"
)

// Who follows takes over the leader's term history, so nobody may before it says where the leader's WAL begins,
// on the leader's own disk.
func TestALeaderIsFollowedWhenItsTermHistoryIsOnDisk(t *testing.T) {
	t.Parallel()
	r := elected(t)
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	promotion := wants[Command](r)[len(wants[Command](r))-1]
	r.step(Done{ID: promotion.ID, Timeline: 2, Begins: 100})
	stores := wants[Store](r)
	last := stores[len(stores)-1]
	history, want := last.HardState.TermHistory, ha.TermStart{Term: 5, LSN: 100, Timeline: 2}
	if history[len(history)-1] != want {
		t.Fatalf("it stores %+v", history)
	}
	if r.Peer().Leading {
		t.Error("it is followed before")
	}
	r.step(Stored{ID: last.ID})
	if !r.Peer().Leading {
		t.Errorf("it is not followed after: %s", r.Instance)
	}
}

// What is put on disk while a stream is being ended is not undone by the term history that is written after it.
func TestATermHistoryIsWrittenWithWhatIsOnDiskThen(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Cut }
	r.wanted = nil
	r.other("db-0.a",
		func(p *ha.Peer) { p.Ballot, p.Leading, p.Streaming = ha.Ballot{Term: 5, Leader: "db-0"}, true, false })
	commands := wants[Command](r)
	if len(commands) != 1 || commands[0].Kind != Cut {
		t.Fatalf("it does not end its stream: %+v", commands)
	}
	record := r.HardState().Configuration
	record.Term, record.Version = 5, record.Version+7
	r.step(ConfigurationProposed{ID: 70, Proposal: Proposal{Leader: "db-0", Voter: "db-1.b", Configuration: record}})
	r.step(Done{ID: commands[0].ID, End: 100})
	stores := wants[Store](r)
	if last := stores[len(stores)-1]; !last.Inherits || last.HardState.Configuration.Version != record.Version ||
		r.HardState().Configuration.Version != record.Version {
		t.Errorf("it writes %+v", last.HardState)
	}
}

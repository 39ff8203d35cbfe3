package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// One that comes back from a cut does not outbid who stands already: it has known for long that its leader is lost, but
// for a moment only that another can be elected.
func TestOneThatComesBackDoesNotOutbid(t *testing.T) {
	t.Parallel()
	r := standby(t)
	goesOn := func(looks int, others ...ha.Voter) {
		for range looks {
			for _, v := range others {
				r.other(v, func(p *ha.Peer) {
					p.Ballot, p.Position = ha.Ballot{Term: 5, Leader: "db-2"}, ha.Position{Term: 4, LSN: 100}
					p.Leading, p.Streaming, p.LeaderLost = false, false, true
				})
			}
			r.step(ServerSeen{Run: r.server.run, Answers: true, Received: 100, End: 100, Known: true})
			r.pass(100 * time.Millisecond)
		}
	}
	goesOn(60)
	if r.Decision().Refusal != ha.RefusedNoMajority {
		t.Fatalf("cut off it decides %+v", r.Decision())
	}
	goesOn(8, voters[2])
	if asked := wants[AskVote](r); len(asked) > 0 || r.Decision().Refusal != "AnotherStands" {
		t.Errorf("it asks for votes %v, and decides %+v", asked, r.Decision())
	}
	goesOn(40, voters[2])
	if len(wants[AskVote](r)) == 0 {
		t.Errorf("where the other does not get on it decides %+v", r.Decision())
	}
}

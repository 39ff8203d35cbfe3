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

// A majority that is heard now and then, as by the witness, counts from the first time on. One that was not heard for
// as long as makes an instance absent counts anew.
func TestAMajorityThatIsHeardNowAndThen(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	heard := unheard
	for _, at := range []struct {
		now            time.Duration
		matters, heard bool
		since          time.Duration
	}{
		{1 * ms, true, false, never},
		{200 * ms, true, true, 200 * ms},
		{3000 * ms, true, false, 200 * ms},
		{3100 * ms, true, true, 200 * ms},
		{6099 * ms, true, false, 200 * ms},
		{6100 * ms, true, false, never},
		{7000 * ms, true, true, 7000 * ms},
		{8000 * ms, false, true, never},
		{9000 * ms, true, false, 9000 * ms},
	} {
		if heard.see(at.now, at.matters, at.heard); heard.since != at.since {
			t.Errorf("at %s it is heard since %s, want %s", at.now, heard.since, at.since)
		}
	}
}

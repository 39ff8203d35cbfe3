package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// A leader whose commits nobody acknowledges makes way once, also when its server can't be stopped in order: it would
// stop again and again otherwise, and serve less than before.
func TestALeaderMakesWayOnceThoughItsStopFails(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.rest()
	r.done = func(c Command) Done {
		if c.Kind == Stop {
			return Done{Err: "the time is over"}
		}
		return Done{End: 100, Timeline: 2, Begins: 100}
	}
	for began := r.now; r.now < began+ha.YieldPause; {
		r.others(func(p *ha.Peer) { p.Streaming = false })
		r.step(ServerSeen{Run: r.server.run, Answers: true})
		if r.currentPoll() != nil { // whether it still leads
			r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
		}
		r.pass(250 * time.Millisecond)
	}
	stops := 0
	for _, c := range wants[Command](r) {
		if c.Kind == Stop {
			stops++
		}
	}
	if stops != 1 {
		t.Errorf("its server was stopped %d times: %s", stops, r)
	}
}

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
		r.leadsOn(func(string) bool { return false })
	}
	if stops := r.stops(); stops != 1 {
		t.Errorf("its server was stopped %d times: %s", stops, r)
	}
}

// Standbys whose streams break off again and again catch up: another leader would have no better ones, where it is the
// network that loses packets. That has an end.
func TestALeaderWaitsForStandbysThatCatchUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lasts, longest time.Duration
		stops          int
	}{
		{0, ha.AcknowledgeLimit + 2*time.Second, 1},
		{2 * time.Second, ha.AcknowledgeLimit + 7*time.Second, 1}, // too short to count
		{5 * time.Second, catchUpLimit, 0},
		{5 * time.Second, catchUpLimit + 2*ha.AcknowledgeLimit, 1},
	} {
		r := served(t)
		r.rest()
		for began := r.now; r.now < began+c.longest; {
			r.leadsOn(func(name string) bool { return name == "db-1" && (r.now-began)%(12*time.Second) < c.lasts })
		}
		if stops := r.stops(); stops != c.stops {
			t.Errorf("one streams for %s of 12 s: %d stops within %s: %s", c.lasts, stops, c.longest, r)
		}
	}
}

// leadsOn has a quarter of a second pass in which nobody acknowledges what a leader writes, though the others say of
// themselves whether they stream.
func (r *rig) leadsOn(streams func(name string) bool) {
	r.Helper()
	r.others(func(p *ha.Peer) { p.Streaming = streams(p.Voter.Instance()) })
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	if r.currentPoll() != nil { // whether it still leads
		r.vouch(ha.VoteReply{Granted: true, Ballot: r.HardState().Ballot})
	}
	r.pass(250 * time.Millisecond)
}

// stops is how often the server was to be stopped.
func (r *rig) stops() (n int) {
	for _, c := range wants[Command](r) {
		if c.Kind == Stop {
			n++
		}
	}
	return n
}

package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// saysOf has the voter db-2 say how it is: as an answer, or by itself.
func (r *rig) saysOf(slack time.Duration, answers, lost bool) {
	r.said++
	s := PeerStatus{
		Name: "db-2", Boot: "1", Number: r.said, Limits: ha.OwnLimits().WithSlack(slack),
		Peer: ha.Peer{
			Voter: "db-2.c", Data: ha.DataPresent, SystemIdentifier: "7", Ballot: r.HardState().Ballot, Eligible: true,
			LeaderLost: lost, TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}},
			Position: ha.Position{Term: 4, LSN: 1},
		},
	}
	if answers {
		r.step(PeerAnswered{Asked: r.now, Status: s})
		return
	}
	r.step(PeerAnnounced{Status: s})
}

// A voter has promised 8 s long ago, promises nothing now, and is heard only by what it announces since. A candidate
// that gets its vote does not count on the 8 s.
func TestAVoteCountsOnSlackThatIsStillOwed(t *testing.T) {
	r := standby(t)
	r.away = true // the leader is silent
	r.saysOf(MaxSlack, true, false)
	heard := r.now
	for r.now < heard+30*time.Second && r.currentPoll() == nil {
		r.saysOf(0, false, r.now > heard+20*time.Second)
		r.pass(250 * time.Millisecond)
	}
	for n := 0; n < 4 && r.currentPoll() != nil && !r.Leads(); n++ {
		p := r.currentPoll()
		r.step(VoteAnswered{Round: p.round, Voter: "db-2.c", Reply: ha.VoteReply{
			Granted: true, Ballot: ha.Ballot{Term: p.request.Term, Leader: r.name},
			Configuration: r.HardState().Configuration,
		}})
	}
	if !r.Leads() {
		t.Fatalf("not elected: %s", r.Instance)
	}
	won := r.now
	for r.now < won+20*time.Second && r.server.role == ha.ServerPrimary {
		r.pass(50 * time.Millisecond) // cut off from all
	}
	if r.now-won > ha.SilenceLimit {
		t.Errorf("a primary for %s, though its voter promises nothing", r.now-won)
	}
}

package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// db-0 is lost. Only db-1, on a calm machine, can be elected, because db-2 has less WAL; and db-2, on a busy one, takes
// a while for each answer. It is waited for longer each time.
func TestACalmCandidateWaitsForABusyVoter(t *testing.T) {
	const ms = time.Millisecond
	for _, late := range []time.Duration{100 * ms, 400 * ms, 1000 * ms, 1900 * ms} {
		r := standby(t)
		r.away = true
		r.holds = func(e Effect) bool { _, is := e.(AskVote); return is }
		voter := &busyVoter{rig: r, late: late, ballot: r.HardState().Ballot, seen: len(r.wanted), began: r.now}
		for r.now-voter.began < 2*time.Minute && !r.Leads() {
			voter.speak()
			voter.vote()
			if r.server.role == ha.ServerStandby {
				r.step(ServerSeen{
					Run: r.server.run, Following: r.server.following.Term, Answers: true, Received: 100, End: 100,
					Known: r.server.following == (ha.Ballot{}),
				})
			}
			r.pass(50 * time.Millisecond)
		}
		if !r.Leads() {
			t.Errorf("a voter that answers after %s: in two minutes nobody is elected", late)
		}
	}
}

// busyVoter is db-2, which answers late.
type busyVoter struct {
	*rig
	late   time.Duration
	ballot ha.Ballot
	began  time.Duration
	seen   int // effects
	asked  []askedOnce
}

type askedOnce struct {
	at time.Duration
	AskVote
}

// speak has it say how it is.
func (b *busyVoter) speak() {
	b.said++
	b.step(PeerAnswered{Asked: b.now - b.late, Status: PeerStatus{
		Name: "db-2", Boot: "1", Number: b.said, Limits: ha.OwnLimits().WithSlack(MaxSlack), Peer: ha.Peer{
			Voter: "db-2.c", Data: ha.DataPresent, SystemIdentifier: "7", Ballot: b.ballot, Eligible: true,
			LeaderLost: b.now-b.began > 10*time.Second, TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}},
			Position: ha.Position{Term: 4, LSN: 90},
		},
	}})
}

// vote has it answer what it was asked a while ago.
func (b *busyVoter) vote() {
	for ; b.seen < len(b.wanted); b.seen++ {
		if a, is := b.wanted[b.seen].(AskVote); is && a.Request.Voter == "db-2.c" {
			b.asked = append(b.asked, askedOnce{b.now, a})
		}
	}
	for len(b.asked) > 0 && b.asked[0].at+b.late <= b.now {
		a := b.asked[0]
		b.asked = b.asked[1:]
		if !a.Request.PreVote && a.Request.Term > b.ballot.Term {
			b.ballot = ha.Ballot{Term: a.Request.Term, Leader: "db-1"}
		}
		b.step(VoteAnswered{Round: a.Round, Voter: "db-2.c", Reply: ha.VoteReply{
			Granted: true, Ballot: b.ballot, Position: ha.Position{Term: 4, LSN: 90},
			Configuration: b.HardState().Configuration,
		}})
	}
}

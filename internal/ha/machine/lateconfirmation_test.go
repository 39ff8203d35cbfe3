package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// A leader comes back on a busy machine: 8 s are promised, and each confirmation takes 1.5 s.
func TestAConfirmationMayTakeAsLongAsTheMachineIsLate(t *testing.T) {
	r := newRig(t, memoryOf("db-0.a", 4, "db-0"))
	r.away = true
	r.step(SlackSeen{Own: MaxSlack})
	r.hear(8 * time.Second)
	r.step(ServerSeen{Run: r.server.run, Answers: true})
	type late struct {
		round uint64
		at    time.Duration
	}
	var waiting []late
	asked := map[uint64]bool{}
	begin := r.now
	for r.now < begin+30*time.Second && !r.server.confirmed && len(wants[Fence](r)) == 0 {
		r.hear(8 * time.Second)
		for _, e := range wants[AskVote](r) {
			if !asked[e.Round] {
				asked[e.Round] = true
				waiting = append(waiting, late{e.Round, r.now + 1500*time.Millisecond})
			}
		}
		for len(waiting) > 0 && waiting[0].at <= r.now {
			for _, v := range voters[1:] {
				r.step(VoteAnswered{Round: waiting[0].round, Voter: v, Reply: ha.VoteReply{
					Granted: true, Ballot: r.HardState().Ballot, Configuration: r.HardState().Configuration,
				}})
			}
			waiting = waiting[1:]
		}
		r.pass(100 * time.Millisecond)
	}
	if !r.server.confirmed {
		t.Error("all voters have confirmed it again and again, and it is fenced")
	}
}

// Voters that a primary finds refusing it elect another at once, whatever they have promised.
func TestAPrimaryCountsOnNoSlackOfWhoRefuses(t *testing.T) {
	r := served(t)
	r.away = true
	for range 8 {
		r.hear(MaxSlack)
		r.pass(250 * time.Millisecond)
	}
	last := r.now
	for r.server.role == ha.ServerPrimary && r.now < last+20*time.Second {
		for _, v := range voters[1:] {
			r.step(PeerRefused{Name: v.Instance(), Asked: r.now})
		}
		r.pass(100 * time.Millisecond)
	}
	if lasts := r.now - last; lasts > 2*time.Second {
		t.Errorf("it goes on for %s", lasts)
	}
}

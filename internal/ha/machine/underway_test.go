package machine

import (
	"testing"

	"toban.dev/internal/ha"
)

// What a winner does before it leads, and a leader before it has handed over, takes long on a busy machine: the others
// are told that it is under way.
func TestAWinnerThatIsPromotedIsUnderWay(t *testing.T) {
	t.Parallel()
	r := elected(t)
	if p := r.Peer(); !p.Underway || p.Leading {
		t.Errorf("while it is promoted: %s", r)
	}
	r.step(Done{ID: promoted(r).ID, Timeline: 2, Begins: 100})
	if p := r.Peer(); p.Underway || !p.Leading {
		t.Errorf("after the promotion: %s", r)
	}
}

func TestALeaderThatStopsInOrderIsUnderWay(t *testing.T) {
	t.Parallel()
	r := served(t)
	stop := r.hold(Stop)
	if r.Peer().Underway {
		t.Errorf("while it leads: %s", r)
	}
	r.step(ResignAsked{})
	if p := r.Peer(); *stop == nil || !p.Underway || p.Leading || p.Resigned {
		t.Fatalf("while it stops: %s", r)
	}
	r.carryOut(*stop)
	if p := r.Peer(); p.Underway || !p.Resigned {
		t.Errorf("when it has stopped: %s", r)
	}
}

// Who does not vote for a winner hears of it before it leads, and waits.
func TestAWinnerThatIsPromotedIsNotOutbid(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.other("db-0.a", func(p *ha.Peer) { p.Leading, p.Resigned = false, true })
	r.other("db-2.c", func(p *ha.Peer) {
		p.Ballot, p.Underway, p.Streaming, p.Eligible = ha.Ballot{Term: 5, Leader: "db-2"}, true, false, false
	})
	r.pass(2 * ha.CampaignPatience)
	if b := r.HardState().Ballot; b.Term != 5 || b.Leader != "db-2" || r.campaign != nil {
		t.Errorf("it does not wait: %s", r)
	}
}

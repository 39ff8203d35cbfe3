package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// A leader that has spoken since it refused the last question does not refuse: an instance that was paused after
// refusals does not take them for as long as its pause.
func TestAnAnnouncementEndsARefusal(t *testing.T) {
	t.Parallel()
	r := standby(t)
	leader := r.hardState.Ballot.Leader
	refuse := func() { r.step(PeerRefused{Name: leader, Asked: r.now}) }
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Received: 100})
	r.now += time.Second
	refuse()
	r.now += ha.RefusedLimit
	refuse()
	r.now += ha.RefusedLimit
	r.step(Tick{})
	if !r.View().LeaderLost() {
		t.Fatal("a leader at whose address nobody listens is not lost")
	}
	r.step(PeerAnnounced{Status: r.news.heard[leader].said})
	if v := r.View(); v.Local.Refused != 0 {
		t.Errorf("it has spoken, and counts as refusing for %s", v.Local.Refused)
	}
	r.now += time.Millisecond
	refuse()
	if v := r.View(); v.Local.Refused > ha.RefusedLimit {
		t.Errorf("it has refused once since, and counts as refusing for %s", v.Local.Refused)
	}
}

// Whether the stream has ended of a leader at whose address nobody listens is looked at once, and not at the next look
// at a standby, which may be a second away.
func TestAStandbyLooksAtItsStreamWhenTheLeaderRefuses(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Streaming: true, Received: 100})
	r.now += ha.RefusedLimit
	looks := len(wants[ObserveServer](r))
	r.step(PeerRefused{Name: r.hardState.Ballot.Leader, Asked: r.now})
	if len(wants[ObserveServer](r)) != looks+1 {
		t.Fatal("it does not look whether it still streams")
	}
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Received: 100})
	looks = len(wants[ObserveServer](r))
	r.now += time.Millisecond
	r.step(PeerRefused{Name: r.hardState.Ballot.Leader, Asked: r.now})
	if len(wants[ObserveServer](r)) != looks {
		t.Error("it looks again though it knows")
	}
}

// An instance wakes up when its leader has been silent for too long, and not up to a tick later.
func TestAnInstanceWakesWhenItsLeaderIsLost(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.others(func(*ha.Peer) {})
	if r.Wake(exactly) != tickInterval {
		t.Errorf("while the leader is heard it wakes after %s", r.Wake(exactly))
	}
	r.now += ha.SilenceLimit - 60*time.Millisecond
	r.step(Tick{})
	aligned := func(time.Duration) time.Duration { return 200 * time.Millisecond } // to all others, and not to the loss
	if wake := r.Wake(aligned); wake < 60*time.Millisecond || wake > 61*time.Millisecond {
		t.Fatalf("60 ms before the leader is lost it wakes after %s", wake)
	}
	r.now += r.Wake(exactly)
	if r.step(Tick{}); !r.View().LeaderLost() {
		t.Error("it wakes, and the leader is not lost")
	}
}

// Who has just lost its leader looks soon whether the one that comes first has had its time to say how far it is.
func TestWhoHasJustLostItsLeaderLooksSoonAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, memoryOf("db-2.c", 4, "db-0"))
	r.others(asIs)
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Streaming: true, Received: 100})
	r.other("db-0.a", func(p *ha.Peer) { p.Resigned, p.Leading = true, false })
	if r.Decision().Refusal != "BetterCandidate" || r.campaign != nil || r.Wake(exactly) > hurryInterval {
		t.Errorf("it looks again after %s: %+v", r.Wake(exactly), r.Decision())
	}
	r.pass(2 * ha.WordPatience)
	if r.campaign == nil {
		t.Errorf("it waits for ever: %+v", r.Decision())
	}
}

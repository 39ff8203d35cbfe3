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

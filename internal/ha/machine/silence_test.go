package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// An answer keeps a leader going only as long as its sender surely elects nobody else: it counts from when that one has
// heard the leader itself. The leader here hears all others, and one more time after a second.
func TestAnAnswerCountsFromWhenItsSenderHasHeardTheLeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*PeerStatus)
		// fenced is how long after the first answers the leader ends its server.
		fenced time.Duration
	}{
		"who has heard it a heartbeat ago":  {silent(ha.HeartbeatInterval), time.Second + ha.FenceLimit},
		"who says nothing of it, as 0.1.0":  {silent(0), time.Second + ha.FenceLimit},
		"who has not heard it for a while":  {silent(time.Second), 250*time.Millisecond + ha.FenceLimit},
		"who has not heard it since before": {silent(ha.SilenceLimit), ha.FenceLimit},
		"who has lost it":                   {func(s *PeerStatus) { s.Peer.LeaderLost = true }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := served(t)
			r.away = true
			began := r.now
			r.pass(time.Second)
			for _, v := range voters[1:] {
				r.said++
				s := PeerStatus{
					Name: v.Instance(), Boot: "1", Number: r.said,
					Peer: ha.Peer{Voter: v, Data: ha.DataPresent, Ballot: r.HardState().Ballot, Streaming: true},
				}
				c.change(&s)
				r.step(PeerAnswered{Status: s, Asked: r.now})
			}
			for len(wants[Fence](r)) == 0 && r.now-began < time.Minute {
				r.pass(10 * time.Millisecond)
			}
			if after := r.now - began; after < c.fenced || after > c.fenced+50*time.Millisecond {
				t.Errorf("its server is ended after %s, want %s", after, c.fenced)
			}
		})
	}
}

func silent(d time.Duration) func(*PeerStatus) { return func(s *PeerStatus) { s.Silence = d } }

// A vote counts as an answer: who has just been elected does not have to be told so again by voters whose last word
// came before that.
func TestAVoteCountsAsAnAnswer(t *testing.T) {
	t.Parallel()
	r := standby(t)
	r.elect(func() {})
	if local := r.View().Local; local.Alone > time.Second || len(wants[Fence](r)) > 0 {
		t.Errorf("it is alone for %s: %s", local.Alone, r.Instance)
	}
	r.pass(time.Second)
	r.said++
	r.step(PeerAnswered{Asked: r.now, Status: PeerStatus{Name: "db-2", Boot: "1", Number: r.said, Peer: ha.Peer{
		Voter: "db-2.c", Data: ha.DataPresent, Ballot: ha.Ballot{Term: 4, Leader: "db-0"},
	}}})
	if alone := r.View().Local.Alone; alone < time.Second {
		t.Errorf("the word of one that knows only an earlier leader counts: it is alone for %s", alone)
	}
}

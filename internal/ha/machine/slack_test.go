package machine

import (
	"testing"
	"time"

	"toban.dev/internal/ha"
)

// A leader that was cut off when 8 s were promised goes on until 9.25 s after that: what is promised less and less
// meanwhile does not shorten it.
func TestAPromiseOfSlackIsKept(t *testing.T) {
	s := newSlack(0, false)
	s.see(time.Second, 8*time.Second, 0)
	s.see(31*time.Second, 0, time.Second)
	s.see(31250*time.Millisecond, 0, 0)
	for at := 31 * time.Second; at < 40250*time.Millisecond; at += 50 * time.Millisecond {
		if got := s.promised(at); got < 8*time.Second {
			t.Fatalf("after %s it goes by %s", at, got)
		}
	}
	if got := s.promised(time.Minute); got != 0 {
		t.Errorf("for ever it goes by %s", got)
	}
	if got := newSlack(0, true); got.promised(time.Second) != MaxSlack || got.promised(SlackHeld) != 0 {
		t.Errorf("a process whose former has promised goes by %+v", got)
	}
}

// hear has the voters answer, with a slack that they promise.
func (r *rig) hear(slack time.Duration) {
	r.Helper()
	for _, v := range voters[1:] {
		r.said++
		r.step(PeerAnswered{Asked: r.now, Status: PeerStatus{
			Name: v.Instance(), Boot: "1", Number: r.said, Limits: ha.OwnLimits().WithSlack(slack),
			Peer: ha.Peer{
				Voter: v, Data: ha.DataPresent, SystemIdentifier: "7", Ballot: r.HardState().Ballot, Streaming: true,
				Eligible: true, TermHistory: []ha.TermStart{{Term: 4, LSN: 0, Timeline: 1}},
				Position: ha.Position{Term: 4, LSN: 90},
			},
		}})
	}
}

// A primary goes on without a majority for as long as the voters have promised, whatever its own slack is by then.
func TestAPrimaryCountsOnWhatIsPromised(t *testing.T) {
	for name, c := range map[string]struct{ promised, most time.Duration }{
		"nothing": {0, 1500 * time.Millisecond}, "four seconds": {4 * time.Second, 5500 * time.Millisecond},
	} {
		r := served(t)
		r.away = true
		for range 8 {
			r.hear(c.promised)
			r.pass(250 * time.Millisecond)
		}
		r.hear(c.promised)
		last := r.now
		for r.server.role == ha.ServerPrimary && r.now < last+20*time.Second {
			r.pass(50 * time.Millisecond)
			if r.now == last+500*time.Millisecond {
				r.step(SlackSeen{Own: MaxSlack})
			}
		}
		if lasts := r.now - last; lasts > c.most || lasts < c.most-500*time.Millisecond {
			t.Errorf("%s promised: it goes on for %s", name, lasts)
		}
	}
}

// Proposals are waited for longer on a busy machine, and made as much less often: answers come too late otherwise.
func TestProposalsHaveSlack(t *testing.T) {
	r := served(t)
	atRest := r.slack.proposalPatience(0)
	r.step(SlackSeen{Leaders: MaxSlack})
	if got := r.slack.proposalPatience(0); got != atRest {
		t.Errorf("on a calm machine a proposal is waited for for %s", got)
	}
	r.step(SlackSeen{Own: MaxSlack})
	if got := r.slack.proposalPatience(0); got < 4*atRest {
		t.Errorf("on a busy machine a proposal is waited for for %s, else %s", got, atRest)
	}
}

// Where nothing comes late on the machine, whoever asks in vain soon asks again; where it does, less and less often,
// and after terms in vain too.
func TestPausesBetweenCampaignsGrow(t *testing.T) {
	for name, c := range map[string]struct {
		slack       SlackSeen
		terms       int
		least, most time.Duration
	}{
		"on a machine at rest":      {SlackSeen{}, 0, quietRest, 2 * quietRest},
		"after many terms in vain":  {SlackSeen{}, quietTerms, mostRest, 2 * mostRest},
		"on a busy machine":         {SlackSeen{Own: time.Second}, 0, mostRest, 2 * mostRest},
		"where the leader's is one": {SlackSeen{Leaders: MaxSlack}, 0, quietRest, 2 * quietRest},
	} {
		r := standby(t)
		r.step(c.slack)
		r.vain = vain{polls: 20, terms: c.terms}
		r.Instance.rest(0)
		if pause := r.watch.rests - r.now; pause < c.least || pause > c.most {
			t.Errorf("%s it rests for %s", name, pause)
		}
	}
	first := vain{}
	if first.pause() != leastRest || first.patience(time.Second) != time.Second {
		t.Errorf("at first it rests for %s", first.pause())
	}
}

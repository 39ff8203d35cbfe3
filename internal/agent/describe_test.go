package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// An instance that campaigns and hears nobody says how often that was in vain, and how late things come on its machine.
func TestTheStatusHasCampaignsInVainAndSlack(t *testing.T) {
	rules := machine.DefaultRules()
	rules.Decide = func(v ha.View) ha.Decision {
		return ha.Decision{Action: ha.Campaign, Reason: "LeaderLost", Ballot: v.Local.HardState.Ballot}
	}
	quorum := ha.Quorum{Voters: []ha.Voter{"db-0.a", "db-1.b", "db-2.c"}, Acknowledgements: 2}
	m := machine.New(machine.Options{
		Name: "db-0", Boot: "1", Rules: rules, Limits: ha.OwnLimits(),
		Config: machine.Config{Members: []string{"db-0", "db-1", "db-2"}, SystemIdentifier: "7"},
		Random: rand.New(rand.NewPCG(1, 2)), // #nosec G404 -- a test must be repeatable
		HardState: ha.HardState{
			Voter: "db-0.a", Ballot: ha.Ballot{Term: 4, Leader: "db-1"},
			Configuration: ha.Configuration{Term: 4, Version: 1, Now: quorum},
		},
	})
	m.Step(0, machine.DataSeen{Data: ha.DataPresent, SystemIdentifier: "7", Room: true})
	for second := range 10 {
		m.Step(time.Duration(second)*time.Second, machine.Tick{})
	}
	slack := 2 * time.Second
	d := describer{
		status: status.New(protocol.Status{}), flags: &running.Flags{}, slack: func() time.Duration { return slack },
		cancelled: func() int64 { return 3 },
	}
	d.describe(m)
	if s := d.status.Get(); s.InVain == 0 || s.InVain != m.InVain() || s.Slack == nil || *s.Slack != slack {
		t.Errorf("it says %d campaigns in vain of %d, and the slack %v", s.InVain, m.InVain(), s.Slack)
	}
	if n := d.status.Get().Election.CancelledCommits; n != 3 {
		t.Errorf("it says that %d commits were cancelled", n)
	}
}

// What the server does not do is a better reason than what was decided, as long as that is to run it.
func TestTheReasonThatIsShown(t *testing.T) {
	follow := ha.Decision{Action: ha.Follow, Reason: "Follower", Message: "follows db-1"}
	for name, c := range map[string]struct {
		before   protocol.Status
		decision ha.Decision
		trouble  string
		want     string
		ready    bool
	}{
		"it follows": {protocol.Status{Reason: "Cloning", Ready: true}, follow, "", "Follower", true},
		"its server does not answer": {
			protocol.Status{Reason: running.ReasonNotAnswering}, follow, "", running.ReasonNotAnswering, false,
		},
		"which is to stop": {
			protocol.Status{Reason: running.ReasonNotAnswering}, ha.Decision{Reason: "Isolated"}, "", "Isolated", false,
		},
		"it does not stream": {
			protocol.Status{Reason: running.ReasonNotStreaming}, follow, "", running.ReasonNotStreaming, false,
		},
		"it streams again": {
			protocol.Status{Reason: running.ReasonNotStreaming, Streaming: true}, follow, "", "Follower", false,
		},
		"what was decided can't be done": {
			protocol.Status{Reason: "Follower", Ready: true}, follow, "the disk is full", "Failed", false,
		},
		"nor does the server answer just now": {
			protocol.Status{Reason: running.ReasonNotAnswering}, follow, "the disk is full", "Failed", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.before
			describeDecision(&s, c.decision, c.trouble)
			if s.Reason != c.want || s.Ready != c.ready || c.trouble != "" && s.Message != c.trouble {
				t.Errorf("it is shown %s: %s, ready: %t", s.Reason, s.Message, s.Ready)
			}
		})
	}
}

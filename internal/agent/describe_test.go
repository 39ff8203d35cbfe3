package agent

import (
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

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
			protocol.Status{Reason: reasonNotAnswering}, follow, "", reasonNotAnswering, false,
		},
		"which is to stop": {
			protocol.Status{Reason: reasonNotAnswering}, ha.Decision{Reason: "Isolated"}, "", "Isolated", false,
		},
		"it does not stream": {protocol.Status{Reason: reasonNotStreaming}, follow, "", reasonNotStreaming, false},
		"it streams again": {
			protocol.Status{Reason: reasonNotStreaming, Streaming: true}, follow, "", "Follower", false,
		},
		"what was decided can't be done": {
			protocol.Status{Reason: "Follower", Ready: true}, follow, "the disk is full", "Failed", false,
		},
		"nor does the server answer just now": {
			protocol.Status{Reason: reasonNotAnswering}, follow, "the disk is full", "Failed", false,
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

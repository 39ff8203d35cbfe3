package agent

import (
	"testing"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/protocol"
)

func TestVitals(t *testing.T) {
	for name, c := range map[string]struct {
		begun        bool
		silence      time.Duration
		serves       bool
		alive, ready bool
	}{
		"it waits for its volume":      {false, 0, true, true, false},
		"it serves":                    {true, time.Second, true, true, true},
		"its server does not":          {true, time.Second, false, true, false},
		"it served when last seen":     {true, roleSilence, true, true, false},
		"the elections hang":           {true, maxSilence, true, false, false},
		"they hang, and it was nobody": {true, maxSilence, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := &vitals{
				status:  status.New(protocol.Status{Ready: c.serves}),
				silence: func() (time.Duration, bool) { return c.silence, c.begun },
			}
			alive, ready := v.alive(t.Context()), v.ready(t.Context())
			if (alive == nil) != c.alive || (ready == nil) != c.ready {
				t.Errorf("alive: %v, ready: %v", alive, ready)
			}
		})
	}
}

package agent

import (
	"testing"

	"toban.dev/internal/ha"
)

// The decision that the server was not elected stays until it is on disk that its data has forked.
func TestAServerThatWasNotElectedIsDisownedOnDisk(t *testing.T) {
	t.Parallel()
	c := copier(t, "PG_VERSION", 0, 0)
	c.running = &running{Agent: c.Agent, role: ha.ServerStandby}
	c.running.noteUnelected()
	if d := ha.Decide(c.observe(t.Context())); d.Action != ha.Disown {
		t.Fatalf("decided %+v", d)
	}
	c.running = nil // it has ended meanwhile
	if d := ha.Decide(c.observe(t.Context())); d.Action != ha.Disown {
		t.Fatalf("decided %+v", d)
	}
	if err := c.act(t.Context(), ha.Decision{Action: ha.Disown}); err != nil {
		t.Fatal(err)
	}
	view := c.observe(t.Context())
	if view.Local.Data != ha.DataForked || view.Local.Unelected || c.voting(t.Context()).HasData {
		t.Errorf("it is %+v", view.Local)
	}
}

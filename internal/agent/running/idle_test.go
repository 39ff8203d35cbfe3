package running

import (
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/protocol"
)

// For how long no client has done anything is known while it is looked, and begins anew with the server.
func TestForHowLongClientsHaveDoneNothing(t *testing.T) {
	i, at := Idle{}, time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	want := func(now time.Time, want time.Duration) {
		t.Helper()
		switch got := i.Lasts(now); {
		case (got == nil) != (want < 0):
			t.Errorf("at %s it lasts %v, want %s", now, got, want)
		case got != nil && *got != want:
			t.Errorf("at %s it lasts %s, want %s", now, *got, want)
		}
	}
	i.begin(at)
	want(at.Add(time.Second), -1)
	i.see(at.Add(time.Second), 0, false)
	want(at.Add(2*time.Second), 2*time.Second)
	i.see(at.Add(time.Hour), 10*time.Minute, true)
	want(at.Add(time.Hour), 10*time.Minute)
	i.see(at.Add(time.Hour+time.Second), time.Hour, true) // the session that did something since then has gone
	want(at.Add(time.Hour+time.Second), 10*time.Minute+time.Second)
	i.see(at.Add(time.Hour+2*time.Second), 0, true)
	want(at.Add(time.Hour+3*time.Second), time.Second)
	want(at.Add(time.Hour+8*time.Second), -1)
	i.begin(at.Add(2 * time.Hour))
	i.see(at.Add(2*time.Hour), 90*time.Minute, true)
	want(at.Add(2*time.Hour), 0)
}

// The server is asked only where somebody wants to know.
func TestAMonitorLooksForClientsWhereThatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{idle: time.Minute}
		w := watch(t, server, true)
		w.idle.begin(time.Now().Add(-time.Hour))
		w.observeOnce(t.Context())
		if got := w.idle.Lasts(time.Now()); got != nil {
			t.Errorf("unasked, it says %s", got)
		}
		w.monitor.wanted = func() protocol.Config { return protocol.Config{Idles: true} }
		w.observeOnce(t.Context())
		if got := w.idle.Lasts(time.Now()); got == nil || *got != time.Minute {
			t.Errorf("it says %v", got)
		}
	})
}

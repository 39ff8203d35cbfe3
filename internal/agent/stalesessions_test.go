package agent

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// Clients that come to a former primary while the Service still leads to it do not stay, also where the server can't be
// asked at first. Those that come later look for a standby, and stay.
func TestMisledClientsDoNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, away := &answering{clients: 2}, true
		connect := func(context.Context) (Session, error) {
			if away {
				return nil, errors.New("the server starts")
			}
			return server, nil
		}
		go staleSessions{connect, slog.New(slog.DiscardHandler)}.endLater(t.Context())
		at := func(wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if server.clients != want {
				t.Errorf("%d clients are there, want %d", server.clients, want)
			}
		}
		at(3*time.Second, 2)
		away = false
		at(6*time.Second, 0)
		server.clients = 1
		at(time.Hour, 1)
	})
}

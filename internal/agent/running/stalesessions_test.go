package running

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// misled is a former primary with clients. They are ended beside the test.
type misled struct {
	*answering
	mutex sync.Mutex
	away  bool
}

func (m *misled) Connect(context.Context) (Session, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.away {
		return nil, errors.New("the server starts")
	}
	return m, nil
}

func (m *misled) EndMisled(ctx context.Context) (n int, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.answering.EndMisled(ctx)
}

// change changes what there is.
func (m *misled) change(to func(m *misled)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	to(m)
}

// left is how many clients are there.
func (m *misled) left() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.clients
}

// Clients that come to a former primary while the Service still leads to it do not stay, also where the server can't be
// asked at first. Those that come later look for a standby, and stay.
func TestMisledClientsDoNotStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &misled{answering: &answering{clients: 2}, away: true}
		go StaleSessions{server.Connect, slog.New(slog.DiscardHandler)}.EndLater(t.Context())
		at := func(wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if got := server.left(); got != want {
				t.Errorf("%d clients are there, want %d", got, want)
			}
		}
		at(3*time.Second, 2)
		server.change(func(m *misled) { m.away = false })
		at(6*time.Second, 0)
		server.change(func(m *misled) { m.clients = 1 })
		at(time.Hour, 1)
	})
}

package running

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

func TestTheEndOfTheWALIsWaitedFor(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		server    answering
		end       wal.LSN
		fails     error
		unelected bool
	}{
		"known at once":        {answering{}, 0x5000010, nil, false},
		"after a while":        {answering{looks: 7}, 0x5000010, nil, false},
		"readers hold it up":   {answering{readers: 2}, 0x5000010, nil, false},
		"its replay is paused": {answering{paused: true}, 0x5000010, nil, false},
		"it is never known":    {answering{looks: 1 << 30}, 0, context.DeadlineExceeded, false},
		"no session":           {answering{refuses: broken}, 0, broken, false},
		"no answer":            {answering{fails: broken}, 0, broken, false},
		"it takes writes, and": {answering{state: postgres.State{InRecovery: false}}, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unelected := false
				c.server.state.InRecovery = !c.unelected
				x := &control{server: &c.server, standing: &Standing{}, unelected: func() { unelected = true }}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end, err := x.AwaitEnd(ctx, true)
				failed := !c.unelected && !errors.Is(err, c.fails) || c.unelected && err == nil
				if end.LSN != c.end || end.Unreplayed != 0 || failed {
					t.Errorf("it ends at %+v, %v", end, err)
				}
				if unelected != c.unelected || c.server.readers != 0 && err == nil {
					t.Errorf("unelected: %t, and %d readers are left", unelected, c.server.readers)
				}
			})
		})
	}
}

// A vote waits for no replay, and changes nothing about it.
func TestAVoteWaitsForNoReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{readers: 2, paused: true, state: postgres.State{InRecovery: true}}
		x, began := &control{server: server, standing: &Standing{}}, time.Now()
		end, err := x.AwaitEnd(t.Context(), false)
		if end != (postgres.End{LSN: 0x5000010, Known: true, Unreplayed: 0x10}) || err != nil || time.Since(began) > 0 {
			t.Errorf("after %s it ends at %+v, %v", time.Since(began), end, err)
		}
		if !server.paused || server.readers != 2 {
			t.Errorf("its replay is hastened: %+v", server)
		}
	})
}

// Readers at a standby are left alone while the end of its WAL is found without that.
func TestReadersAreLeftAloneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{looks: 10, state: postgres.State{InRecovery: true}}
		x := &control{server: readersRefused{server, t}, standing: &Standing{}}
		if end, err := x.AwaitEnd(t.Context(), true); end.LSN != 0x5000010 || err != nil {
			t.Errorf("it ends at %+v, %v", end, err)
		}
	})
}

// readersRefused fails the test when readers are ended.
type readersRefused struct {
	*answering
	t *testing.T
}

func (s readersRefused) Connect(context.Context) (Session, error) { return s, nil }

func (s readersRefused) HastenReplay(_ context.Context, readers bool) error {
	if readers {
		s.t.Error("readers are ended")
	}
	return nil
}

func TestASessionIsKeptUntilItBreaks(t *testing.T) {
	server := &answering{}
	x := &control{server: server, standing: &Standing{}}
	for want := range 3 {
		for range 2 {
			if _, err := x.Connect(t.Context()); err != nil || server.sessions != want+1 {
				t.Errorf("%d sessions were made, %v", server.sessions, err)
			}
		}
		server.broken = true
	}
	x.close()
	if x.session != nil {
		t.Error("the session is still there")
	}
}

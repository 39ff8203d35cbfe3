package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// answering is a server that answers as it is told to, and a session with it. What no test asks for is nil.
type answering struct {
	PostgreSQL
	Session
	state    postgres.State
	standbys []string
	free     uint64
	// end is known after looks; readers hold it up until they have ended.
	looks, readers int
	sessions       int
	broken         bool
	// refuses says why no session can be had, fails why a question is not answered, hangs that it takes for ever.
	refuses, fails error
	hangs          bool
}

func (s *answering) Connect(ctx context.Context) (Session, error) {
	s.sessions++
	if s.refuses != nil {
		return nil, s.refuses
	}
	s.broken = false
	return s, s.answer(ctx)
}

// answer waits for an answer.
func (s *answering) answer(ctx context.Context) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.fails
}

func (s *answering) Close()       {}
func (s *answering) Broken() bool { return s.broken }

func (s *answering) State(ctx context.Context) (postgres.State, error) {
	return s.state, s.answer(ctx)
}

func (s *answering) Standbys(context.Context) ([]string, error)    { return s.standbys, nil }
func (s *answering) EnsureSlots(context.Context, []string) error   { return nil }
func (s *answering) ProveWrite(context.Context) error              { return nil }
func (s *answering) EnsureReplication(context.Context) error       { return nil }
func (s *answering) CloseMaintenance(context.Context) error        { return nil }
func (s *answering) FreeSpace() (uint64, error)                    { return s.free, nil }
func (s *answering) ConfigErrors(context.Context) error            { return nil }
func (s *answering) LoadTime(context.Context) (time.Time, error)   { return time.Time{}, nil }
func (s *answering) EndClients(context.Context) (n int, err error) { return 0, nil }

func (s *answering) PendingRestart(context.Context) ([]string, error) { return nil, nil }

func (s *answering) OldestWAL(context.Context) (file string, size uint64, err error) {
	return "000000010000000000000003", 16 << 20, nil
}

func (s *answering) EndOfWAL(ctx context.Context) (lsn string, known bool, err error) {
	if s.looks--; s.looks < 0 && s.readers == 0 {
		return "0/5000010", true, s.answer(ctx)
	}
	return "", false, s.answer(ctx)
}

func (s *answering) EndReaders(context.Context) (n int, err error) {
	n, s.readers = s.readers, 0
	return n, nil
}

func TestTheEndOfTheWALIsWaitedFor(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		server    answering
		end       ha.LSN
		fails     error
		unelected bool
	}{
		"known at once":        {answering{}, 0x5000010, nil, false},
		"after a while":        {answering{looks: 7}, 0x5000010, nil, false},
		"readers hold it up":   {answering{readers: 2}, 0x5000010, nil, false},
		"it is never known":    {answering{looks: 1 << 30}, 0, context.DeadlineExceeded, false},
		"no session":           {answering{refuses: broken}, 0, broken, false},
		"no answer":            {answering{fails: broken}, 0, broken, false},
		"it takes writes, and": {answering{state: postgres.State{InRecovery: false}}, 0, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				unelected := false
				c.server.state.InRecovery = !c.unelected
				x := &control{server: &c.server, standing: &standing{}, unelected: func() { unelected = true }}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				end, err := x.awaitEnd(ctx)
				if end != c.end || !c.unelected && !errors.Is(err, c.fails) || c.unelected && err == nil {
					t.Errorf("it ends at %s, %v", end, err)
				}
				if unelected != c.unelected || c.server.readers != 0 && err == nil {
					t.Errorf("unelected: %t, and %d readers are left", unelected, c.server.readers)
				}
			})
		})
	}
}

// Readers at a standby are left alone while the end of its WAL is found without that.
func TestReadersAreLeftAloneForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answering{looks: 10, state: postgres.State{InRecovery: true}}
		x := &control{server: readersRefused{server, t}, standing: &standing{}}
		if end, err := x.awaitEnd(t.Context()); end != 0x5000010 || err != nil {
			t.Errorf("it ends at %s, %v", end, err)
		}
	})
}

// readersRefused fails the test when readers are ended.
type readersRefused struct {
	*answering
	t *testing.T
}

func (s readersRefused) Connect(context.Context) (Session, error) { return s, nil }

func (s readersRefused) EndReaders(context.Context) (int, error) {
	s.t.Error("readers are ended")
	return 0, nil
}

func TestASessionIsKeptUntilItBreaks(t *testing.T) {
	server := &answering{}
	x := &control{server: server, standing: &standing{}}
	for want := range 3 {
		for range 2 {
			if _, err := x.connect(t.Context()); err != nil || server.sessions != want+1 {
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

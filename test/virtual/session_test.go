package virtual

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// session is one of an agent with its server.
type session struct {
	*process
	broken atomic.Bool
}

var _ running.Session = (*session)(nil)

var errBroken = errors.New("the connection is broken")

// query is what every question takes. A server that hangs does not answer; a question that is given up takes its
// connection with it.
func (s *session) query(ctx context.Context) error {
	if s.broken.Load() {
		return errBroken
	}
	if err := s.s.takes(ctx, "query", 100*time.Microsecond, time.Millisecond); err != nil {
		s.broken.Store(true)
		return err
	}
	if err := s.await(ctx, func() bool { return time.Now().After(s.hangs) }); err != nil {
		s.broken.Store(true)
		return err
	}
	return nil
}

// ask asks something, and gives back what the server says.
func ask[T any](ctx context.Context, s *session, look func(d *disk) T) (T, error) {
	var none T
	if err := s.query(ctx); err != nil {
		return none, err
	}
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	if s.isEnded() {
		s.broken.Store(true)
		return none, errBroken
	}
	return look(s.s.disk), nil
}

// Close and Broken are postgres.Session's.
func (s *session) Close()       { s.broken.Store(true) }
func (s *session) Broken() bool { return s.broken.Load() || s.ended() }

// State is postgres.Session's.
func (s *session) State(ctx context.Context) (postgres.State, error) {
	began := time.Now()
	state, err := ask(ctx, s, func(d *disk) postgres.State {
		state := postgres.State{Version: "17.6", SystemIdentifier: d.system, InRecovery: s.recovery,
			Timeline: d.timeline(), LSN: lsn(len(d.wal)).String(), Streaming: s.streams}
		if s.recovery {
			state.Replayed = lsn(s.replayed).String()
		}
		return state
	})
	state.Took = time.Since(began)
	return state, err
}

// StateWithin is postgres.Session's: nothing of a state is on a disk here.
func (s *session) StateWithin(_, memory context.Context) (postgres.State, error) {
	return s.State(memory)
}

// EndOfWAL is postgres.Session's.
func (s *session) EndOfWAL(ctx context.Context) (postgres.End, error) {
	return ask(ctx, s, func(d *disk) postgres.End {
		end := postgres.End{LSN: lsn(len(d.wal)), Known: !s.recovery || !s.receives}
		if end.Unreplayed = end.LSN.Since(lsn(s.replayed)); s.held && end.Unreplayed > 0 {
			end.Unreplayed = 1 << 30
		}
		return end
	})
}

// WakeIdle is postgres.Session's. The model's startup process waits for nothing.
func (s *session) WakeIdle(ctx context.Context) error { return s.query(ctx) }

// HastenReplay is postgres.Session's. The model's readers hold nothing up.
func (s *session) HastenReplay(ctx context.Context, _ bool) error { return s.query(ctx) }

// EndClients and EndMisled are postgres.Session's. The model's clients leave at once.
func (s *session) EndClients(ctx context.Context) (int, error) { return 0, s.query(ctx) }
func (s *session) NotIn(ctx context.Context, pids []int) ([]int, error) {
	return pids, s.query(ctx)
}
func (s *session) EndMisled(ctx context.Context) (int, error) { return 0, s.query(ctx) }

// Idle is postgres.Session's. The model has no clients with sessions.
func (s *session) Idle(ctx context.Context) (time.Duration, bool, error) {
	return 0, false, s.query(ctx)
}

// EndFollowers is postgres.Session's.
func (s *session) EndFollowers(ctx context.Context) error { return s.query(ctx) }

// EndWriters is postgres.Session's.
func (s *session) EndWriters(ctx context.Context, _ time.Time, _ bool) (int, error) {
	return 0, s.query(ctx)
}

// Promote is postgres.Session's. What it has begun goes on by itself when ctx ends.
func (s *session) Promote(ctx context.Context, begun func()) error {
	if err := s.query(ctx); err != nil {
		return err
	}
	s.startPromotion()
	begun()
	for {
		recovers, err := ask(ctx, s, func(*disk) bool { return s.recovery })
		if err != nil || !recovers {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("wait for the promotion: %w", err)
		}
	}
}

// Checkpoint is postgres.Session's.
func (s *session) Checkpoint(ctx context.Context) error {
	if err := s.query(ctx); err != nil {
		return err
	}
	if err := s.s.takes(ctx, "checkpoint", 5*time.Millisecond, 150*time.Millisecond); err != nil {
		s.broken.Store(true)
		return err
	}
	_, err := ask(ctx, s, func(d *disk) bool {
		if !s.recovery {
			d.checkpoint, d.settled = len(d.wal), d.timeline()
			s.append("checkpoint")
		}
		return true
	})
	return err
}

// ProveWrite is postgres.Session's. It waits for the volume, and for no standby.
func (s *session) ProveWrite(ctx context.Context) error {
	if err := s.query(ctx); err != nil {
		return err
	}
	if err := s.s.awaitVolumeFor(ctx); err != nil {
		s.broken.Store(true)
		return err
	}
	_, err := ask(ctx, s, func(*disk) bool { s.append("alive"); return true })
	return err
}

// Standbys is postgres.Session's. The model has nobody who passes for one.
func (s *session) Standbys(ctx context.Context) (names, impostors []string, err error) {
	names, err = ask(ctx, s, func(*disk) []string {
		var names []string
		for c := range s.downstream {
			if c.caughtUp {
				names = append(names, c.name)
			}
		}
		return names
	})
	return names, nil, err
}

// EnsureReplication and the next ones are postgres.Session's. The model has no roles and no slots.
func (s *session) EnsureReplication(ctx context.Context) error       { return s.query(ctx) }
func (s *session) EnsurePooler(ctx context.Context, _ bool) error    { return s.query(ctx) }
func (s *session) KeepMaintenance(ctx context.Context) error         { return s.query(ctx) }
func (s *session) EnsureSlot(ctx context.Context, _ string) error    { return s.query(ctx) }
func (s *session) EnsureSlots(ctx context.Context, _ []string) error { return s.query(ctx) }

func (s *session) KeepLinkSlots(ctx context.Context) (bool, error) { return false, s.query(ctx) }
func (s *session) Follows(ctx context.Context) (bool, error)       { return false, s.query(ctx) }
func (s *session) GiveUpLink(ctx context.Context, _ int64) ([]string, error) {
	return nil, s.query(ctx)
}
func (s *session) AdvanceSlot(ctx context.Context, _, _ string) error   { return s.query(ctx) }
func (s *session) ConfigErrors(ctx context.Context) error               { return s.query(ctx) }
func (s *session) PendingRestart(ctx context.Context) ([]string, error) { return nil, s.query(ctx) }
func (s *session) LoadTime(ctx context.Context) (time.Time, error) {
	return ask(ctx, s, func(*disk) time.Time { return s.loaded })
}

// KeptWAL is postgres.Session's: slots keep nothing here.
func (s *session) KeptWAL(ctx context.Context, _ int64) (postgres.KeptWAL, error) {
	return postgres.KeptWAL{}, s.query(ctx)
}

// OldestWAL is postgres.Session's.
func (s *session) OldestWAL(ctx context.Context) (wal.LSN, error) {
	return ask(ctx, s, func(d *disk) wal.LSN {
		// The file in which the oldest record lies may begin before it: the next one is whole.
		return (lsn(d.oldest) + segmentSize - 1) / segmentSize * segmentSize
	})
}

// FlushedWAL is postgres.Session's.
func (s *session) FlushedWAL(ctx context.Context) (wal.LSN, error) {
	return ask(ctx, s, func(d *disk) wal.LSN { return lsn(len(d.wal)) })
}

// InsertedWAL is postgres.Session's.
func (s *session) InsertedWAL(ctx context.Context) (wal.LSN, error) { return s.FlushedWAL(ctx) }

package running

import (
	"context"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// answering is a server that answers as it is told to, and a session with it. What no test asks for is nil.
type answering struct {
	PostgreSQL
	DataDirectory
	WALDirectory
	Session
	state    postgres.State
	standbys []string
	free     uint64
	// end is known after looks; readers, and a pause, hold its replay up until they have ended.
	looks, readers int
	// woken is how often its startup process was told to look for WAL.
	woken    int
	paused   bool
	sessions int
	// letIn is how often it was told to let us in again.
	letIn  int
	broken bool
	// clients are there until they are told to end; inserted is where the WAL ends.
	clients  int
	idle     time.Duration
	inserted wal.LSN
	// follows says that it follows another side.
	follows bool
	// ended has an entry for each time that those who write were ended: whether those who read were too.
	ended []bool
	// refuses says why no session can be had, refusesClients why none of a client's kind, fails why a question is not
	// answered, hangs that it takes for ever.
	refuses, refusesClients, fails error
	hangs                          bool
	// stalls says that its disk takes no writes.
	stalls bool
	// busy says that it does what its role asks, and is slow with the rest; unwilling why it refuses the rest.
	busy      bool
	unwilling error
	// noSlots is why it makes none, noIdle why it does not say for how long no client has done anything.
	noSlots, noIdle error
}

func (s *answering) Connect(ctx context.Context) (Session, error) {
	s.sessions++
	if s.refuses != nil {
		return nil, s.refuses
	}
	s.broken = false
	return s, s.answer(ctx)
}

func (s *answering) ProveLogin(ctx context.Context) error {
	if s.refusesClients != nil {
		return s.refusesClients
	}
	_, err := s.Connect(ctx)
	return err
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
	return s.StateWithin(ctx, ctx)
}

func (s *answering) StateWithin(_, memory context.Context) (postgres.State, error) {
	return s.state, s.answer(memory)
}

func (s *answering) Standbys(ctx context.Context) (names, impostors []string, err error) {
	if s.busy {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	}
	return s.standbys, nil, s.unwilling
}

func (s *answering) WakeIdle(context.Context) error {
	s.woken++
	return nil
}

func (s *answering) EndFollowers(context.Context) error          { return nil }
func (s *answering) EnsureSlots(context.Context, []string) error { return s.noSlots }
func (s *answering) KeepLinkSlots(context.Context) (bool, error) { return false, nil }
func (s *answering) GiveUpLink(context.Context, int64) ([]string, error) {
	return nil, nil
}
func (s *answering) Follows(context.Context) (bool, error) { return s.follows, nil }
func (s *answering) ProveWrite(ctx context.Context) error {
	if s.stalls {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.answer(ctx)
}
func (s *answering) EnsureReplication(context.Context) error  { return nil }
func (s *answering) EnsurePooler(context.Context, bool) error { return nil }
func (s *answering) KeepMaintenance(context.Context) error {
	if s.refuses != nil {
		s.letIn++
	}
	return nil
}
func (s *answering) Directory() DataDirectory                    { return s }
func (s *answering) WAL() WALDirectory                           { return s }
func (s *answering) FreeSpace() (uint64, error)                  { return s.free, nil }
func (s *answering) ConfigErrors(context.Context) error          { return nil }
func (s *answering) LoadTime(context.Context) (time.Time, error) { return time.Time{}, nil }

// EndClients ends one of those that are there.
func (s *answering) EndClients(context.Context) (n int, err error) {
	if s.clients > 0 {
		s.clients--
		return 1, nil
	}
	return 0, nil
}

func (s *answering) NotIn(_ context.Context, pids []int) ([]int, error) { return pids, nil }

// Idle is of clients that have never done anything.
func (s *answering) Idle(context.Context) (time.Duration, bool, error) {
	return s.idle, s.idle > 0, s.noIdle
}

// EndMisled ends all that are there.
func (s *answering) EndMisled(context.Context) (n int, err error) {
	n, s.clients = s.clients, 0
	return n, nil
}

func (s *answering) EndWriters(_ context.Context, _ time.Time, reads bool) (n int, err error) {
	s.ended = append(s.ended, reads)
	return 1, nil
}

// InsertedWAL goes further with each question.
func (s *answering) InsertedWAL(ctx context.Context) (wal.LSN, error) {
	s.inserted += 8
	return s.inserted, s.answer(ctx)
}

func (s *answering) PendingRestart(context.Context) ([]string, error) { return nil, nil }

func (s *answering) KeptWAL(context.Context, int64) (postgres.KeptWAL, error) {
	return postgres.KeptWAL{}, nil
}

func (s *answering) OldestWAL(context.Context) (wal.LSN, error) {
	return 0x3000000, nil
}

func (s *answering) EndOfWAL(ctx context.Context) (postgres.End, error) {
	if s.looks--; s.looks >= 0 {
		return postgres.End{}, s.answer(ctx)
	}
	end := postgres.End{LSN: 0x5000010, Known: true}
	if s.readers > 0 || s.paused {
		end.Unreplayed = 0x10
	}
	return end, s.answer(ctx)
}

func (s *answering) HastenReplay(_ context.Context, readers bool) error {
	s.paused = false
	if readers {
		s.readers = 0
	}
	return nil
}

// process is one of a server that runs until it is closed.
type process struct {
	Process
	done chan struct{}
	// logins is how many are logging in, of which one ends each time that they are told to; nil for none.
	logins *int
	// killed is how often its receiver was killed; nil where no test asks.
	killed *int
}

func (p process) KillReceiver() error { *p.killed++; return nil }

func (p process) EndLogins(time.Duration, func([]int) ([]int, error)) (n int, err error) {
	if p.logins != nil && *p.logins > 0 {
		*p.logins--
		return 1, nil
	}
	return 0, nil
}

func (p process) Done() <-chan struct{} { return p.done }

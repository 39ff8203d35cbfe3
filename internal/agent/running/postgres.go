package running

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// PostgreSQL is what an agent asks of its server: postgres.Server, or in tests that run whole clusters in virtual time
// a model of one (test/virtual). What each method does is said there.
type PostgreSQL interface {
	// Directory is its data directory, WAL its pg_wal.
	Directory() DataDirectory
	WAL() WALDirectory
	Incomplete() (bool, error)
	Control(ctx context.Context) (postgres.Control, error)
	Initialise(ctx context.Context, progress io.Writer) error
	Clone(ctx context.Context, source postgres.Upstream, mayDiscard func(whole bool) error, progress io.Writer) error
	Rewind(ctx context.Context, source postgres.Upstream, progress io.Writer) error

	Check(ctx context.Context, settings postgres.Settings) error
	Configure(settings postgres.Settings) error
	Revoke(term uint64) error
	Start(ctx context.Context, log io.Writer) (Process, error)
	Connect(ctx context.Context) (Session, error)
	LetUsIn(ctx context.Context) error
	ProveLogin(ctx context.Context) error
	ConnectTo(ctx context.Context, database string) (*pgx.Conn, error)
	ConnectStatistics(ctx context.Context) (*pgx.Conn, error)
	ConnectMetrics(ctx context.Context, database string) (*pgx.Conn, error)
	EnsureMetricsRole(ctx context.Context, reads string) error
	Presents(ctx context.Context) (postgres.Presented, error)
	AwaitEnforced(ctx context.Context) error
	Barrier(ctx context.Context, rule string) error
}

// DataDirectory is where the data of the server lies. See postgres.DataDirectory.
type DataDirectory interface {
	Path() string
	HasData() (bool, error)
	Forked() (bool, error)
	MarkForked() error
	FreeSpace() (bytes uint64, err error)
	SetStandby(standby bool) error
}

// WALDirectory has the WAL and the histories of its timelines. See postgres.WALDirectory.
type WALDirectory interface {
	Fork(timeline wal.Timeline) (wal.LSN, error)
	Branch(timeline, earlier wal.Timeline) (wal.LSN, error)
	ForkFrom(timeline wal.Timeline, from wal.LSN) (wal.LSN, error)
	HasTimelines(after wal.Timeline) (bool, error)
	ForgetTimelines(after wal.Timeline) error
	ForgetSuperseded(current wal.Timeline) (removed int, err error)
	Open(name string) (*os.File, error)
}

// Process is a server that runs. See postgres.Process.
type Process interface {
	Done() <-chan struct{}
	Err() error
	MissingTablespace() string
	Ready(ctx context.Context) error
	Stop(ctx context.Context, mode postgres.StopMode)
	Kill(ctx context.Context, hangs bool) error
	Gone(ctx context.Context) error
	Reload() error
	EndLogins(older time.Duration, notIn func([]int) ([]int, error)) (n int, err error)
	StopReceiving(ctx context.Context) error
	KillReceiver() error
}

// Session is a connection of the agent's own to its server. See postgres.Session.
type Session interface {
	Close()
	Broken() bool
	State(ctx context.Context) (postgres.State, error)
	StateWithin(ctx, memory context.Context) (postgres.State, error)
	EndOfWAL(ctx context.Context) (postgres.End, error)
	HastenReplay(ctx context.Context, readers bool) error
	WakeIdle(ctx context.Context) error
	EndClients(ctx context.Context) (n int, err error)
	NotIn(ctx context.Context, pids []int) ([]int, error)
	Idle(ctx context.Context) (idle time.Duration, known bool, err error)
	EndMisled(ctx context.Context) (n int, err error)
	EndWriters(ctx context.Context, begun time.Time, reads bool) (n int, err error)
	Promote(ctx context.Context, begun func()) error
	EndFollowers(ctx context.Context) error
	Checkpoint(ctx context.Context) error
	ProveWrite(ctx context.Context) error
	Standbys(ctx context.Context) (names, impostors []string, err error)
	EnsureReplication(ctx context.Context) error
	EnsurePooler(ctx context.Context, wanted bool) error
	KeepMaintenance(ctx context.Context) error
	EnsureSlot(ctx context.Context, slot string) error
	EnsureSlots(ctx context.Context, want []string) error
	KeepLinkSlots(ctx context.Context) (synced bool, err error)
	Follows(ctx context.Context) (bool, error)
	GiveUpLink(ctx context.Context, most int64) (dropped []string, err error)
	AdvanceSlot(ctx context.Context, slot, lsn string) error
	OldestWAL(ctx context.Context) (wal.LSN, error)
	KeptWAL(ctx context.Context, least int64) (postgres.KeptWAL, error)
	FlushedWAL(ctx context.Context) (wal.LSN, error)
	InsertedWAL(ctx context.Context) (wal.LSN, error)
	ConfigErrors(ctx context.Context) error
	LoadTime(ctx context.Context) (time.Time, error)
	PendingRestart(ctx context.Context) ([]string, error)
}

// Real is PostgreSQL itself. It gives nil, and no interface with a nil in it, where there is nothing to give.
type Real struct{ *postgres.Server }

// Directory is its data directory.
func (s Real) Directory() DataDirectory { return s.Data }

// WAL is its pg_wal.
func (s Real) WAL() WALDirectory { return s.Data.WAL() }

// Start starts it.
func (s Real) Start(ctx context.Context, log io.Writer) (Process, error) {
	p, err := s.Server.Start(ctx, log)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Connect opens a session.
func (s Real) Connect(ctx context.Context) (Session, error) {
	session, err := s.Server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return session, nil
}

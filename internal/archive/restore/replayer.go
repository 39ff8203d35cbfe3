package restore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// LocalReplayer is a server on this machine that recovers, asked through its Unix socket as superuser.
type LocalReplayer struct {
	Server *postgres.Server
	conn   *pgx.Conn
}

// Close ends its session.
func (l *LocalReplayer) Close() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background())
		l.conn = nil
	}
}

// Position asks the server. While it takes no connections yet, the title of its startup
// process has the segment that it reads: then that is the position.
func (l *LocalReplayer) Position(ctx context.Context) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	p, err := l.ask(ctx)
	if err == nil {
		return p, nil
	}
	l.Close()
	segment, found := startupSegment(l.Server.Data.Path())
	if !found {
		return Position{}, err
	}
	return Position{InRecovery: true, LSN: segment.Start()}, nil
}

func (l *LocalReplayer) ask(ctx context.Context) (Position, error) {
	if l.conn == nil {
		conn, err := connectScratch(ctx, l.Server, naming.RoleSuperuser, "postgres", readSettings())
		if err != nil {
			return Position{}, fmt.Errorf("ask how far the replay is: %w", err)
		}
		l.conn = conn
	}
	const query = `select pg_is_in_recovery(), coalesce(pg_last_wal_replay_lsn()::text, '0/0'),
		pg_last_xact_replay_timestamp(),
		coalesce((select wait_event from pg_stat_activity where backend_type = 'startup'), '')`
	var p Position
	var lsn, wait string
	var commit *time.Time
	if err := l.conn.QueryRow(ctx, query).Scan(&p.InRecovery, &lsn, &commit, &wait); err != nil {
		return Position{}, fmt.Errorf("ask how far the replay is: %w", err)
	}
	if commit != nil {
		p.Commit = *commit
	}
	// Between two looks for WAL, or until somebody resumes it; the names are the same in PostgreSQL 15 to 18.
	p.Waits, p.Paused = wait == "RecoveryRetrieveRetryInterval", wait == "RecoveryPause"
	var err error
	p.LSN, err = wal.ParseLSN(lsn)
	return p, err
}

// WhileRunning is a context that ends when the server's process does, and says why.
func WhileRunning(ctx context.Context, process *postgres.Process) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-process.Done():
			cancel(process.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// startupTitle is the title of a startup process (set_ps_display in xlogrecovery.c,
// "recovering" or "waiting for" with the name of a segment, before which a cluster_name may be).
var startupTitle = regexp.MustCompile(`^postgres: .*startup .*([0-9A-F]{24})`)

// startupSegment is the segment that the startup process of a data directory's server reads
// or waits for. Linux only; update_process_title is on unless it is turned off.
func startupSegment(data string) (wal.Segment, bool) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return wal.Segment{}, false
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		return wal.Segment{}, false
	}
	for _, child := range strings.Fields(string(children)) {
		title, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		if m := startupTitle.FindSubmatch(title); m != nil {
			return wal.ParseSegment(string(m[1]), format.SegmentSize)
		}
	}
	return wal.Segment{}, false
}

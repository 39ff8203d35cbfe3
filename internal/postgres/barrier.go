package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Barrier commits something and waits until the standbys of a rule
// (Settings.Synchronous) have it on disk, and with it all that was committed
// before. nil means that they have said so, an error that it is not known.
// It takes a session of its own, for as long as ctx allows.
//
// A commit that returns is no proof by itself: a wait that is cancelled ends with a
// WARNING and in success (SyncRepWaitForLSN in syncrep.c), and none takes place
// before the checkpointer has seen the rule. So the rule must be in force, no
// notice may come, and the standbys' own reports are looked at in the end.
func (s *Server) Barrier(ctx context.Context, rule string) error {
	if err := s.barrier(ctx, rule); err != nil {
		return fmt.Errorf("have a commit acknowledged by the standbys: %w", err)
	}
	return nil
}

func (s *Server) barrier(ctx context.Context, rule string) error {
	var notice *pgconn.Notice
	session, end, err := s.connectToWait(ctx, func(config *pgx.ConnConfig) {
		config.RuntimeParams["statement_timeout"] = "0"
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice = n }
	})
	if err != nil {
		return err
	}
	defer end()
	if err := session.inForce(ctx, rule); err != nil {
		return err
	}
	var lsn string
	if err := session.conn.QueryRow(ctx,
		"select pg_logical_emit_message(true, 'toban', 'barrier')::text").Scan(&lsn); err != nil {
		return err
	}
	if notice != nil {
		return fmt.Errorf("the server says %s: %s", notice.Severity, notice.Message)
	}
	if err := session.inForce(ctx, rule); err != nil {
		return err
	}
	return session.acknowledged(ctx, rule, lsn)
}

// errNoCancel is what a cancel request fails with.
var errNoCancel = errors.New("a commit that waits is not cancelled")

// connectToWait opens a session whose commits wait for standbys, until end. If ctx ends before, the session's process
// is ended. A cancel request, which pgx would send then, has the server report a commit as a success that no standby
// has: it would be counted as one of a client (CommitLog).
func (s *Server) connectToWait(
	ctx context.Context, change func(*pgx.ConnConfig),
) (session *Session, end func(), err error) {
	var connected atomic.Bool
	session, err = s.connect(ctx, func(config *pgx.ConnConfig) {
		config.RuntimeParams["synchronous_commit"] = "on"
		dial := config.DialFunc
		config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if connected.Load() {
				return nil, errNoCancel
			}
			return dial(ctx, network, address)
		}
		change(config)
	})
	if err != nil {
		return nil, nil, err
	}
	connected.Store(true)
	pid := int(session.conn.PgConn().PID())
	ended := make(chan struct{})
	goOn := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = syscall.Kill(pid, syscall.SIGTERM) // gone already: as well
	})
	return session, func() {
		if !goOn() {
			<-ended // before the process can be another one
		}
		session.Close()
	}, nil
}

// inForce checks that a rule is the one that the session works by.
func (s *Session) inForce(ctx context.Context, rule string) error {
	var actual string
	if err := s.conn.QueryRow(ctx, "select current_setting('synchronous_standby_names')").Scan(&actual); err != nil {
		return err
	}
	if actual != rule {
		return fmt.Errorf("synchronous_standby_names is %q and not %q", actual, rule)
	}
	return nil
}

// acknowledged checks that as many standbys as the rule asks for have reported a
// position on disk.
func (s *Session) acknowledged(ctx context.Context, rule, lsn string) error {
	need := standbysOf(rule)
	const query = "select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum') and " +
		"flush_lsn >= $1::text::pg_lsn"
	var have int
	if err := s.conn.QueryRow(ctx, query, lsn).Scan(&have); err != nil {
		return err
	}
	if have < need {
		return fmt.Errorf("%d standbys have it on disk, and %q asks for %d", have, rule, need)
	}
	return nil
}

var ruleCount = regexp.MustCompile(`(?i)^\s*(?:any|first)?\s*(\d+)\s*\(`)

// standbysOf is how many standbys a rule asks for (PostgreSQL 17 documentation,
// 19.6.2): "ANY n (…)", "FIRST n (…)", "n (…)", or a list, of which it is one.
func standbysOf(rule string) int {
	if rule == "" {
		return 0
	}
	match := ruleCount.FindStringSubmatch(rule)
	if match == nil {
		return 1
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return 1
	}
	return n
}

// enforcedInterval is how often AwaitEnforced looks: users' commits wait meanwhile.
const enforcedInterval = 2 * time.Millisecond

// AwaitEnforced returns when commits are seen to wait for standbys. It is for a server
// that has just been given a rule (Settings.Synchronous) which nobody can meet,
// after one without any: sessions wait only once the checkpointer has read the rule
// (SyncRepUpdateSyncStandbysDefined in syncrep.c, PostgreSQL 15 to 18), and that
// may be in the middle of something else. The commits it tries are its own.
func (s *Server) AwaitEnforced(ctx context.Context) error {
	watcher, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	defer watcher.Close()
	for {
		waits, err := s.commitWaits(ctx, watcher)
		if err != nil {
			return fmt.Errorf("see a commit wait for the standbys: %w", err)
		}
		if waits {
			return nil
		}
	}
}

// commitWaits commits something in a session of its own, and says whether that waited.
func (s *Server) commitWaits(ctx context.Context, watcher *Session) (bool, error) {
	session, end, err := s.connectToWait(ctx, func(*pgx.ConnConfig) {})
	if err != nil {
		return false, err
	}
	defer end()
	pid := session.conn.PgConn().PID()
	committed := make(chan struct{})
	go func() {
		defer close(committed)
		err = session.ProveWrite(ctx)
	}()
	for {
		select {
		case <-committed:
			return false, err
		case <-time.After(enforcedInterval):
		}
		var waits bool
		const look = "select coalesce((select wait_event = 'SyncRep' from pg_stat_activity where pid = $1), false)"
		if err := watcher.conn.QueryRow(ctx, look, pid).Scan(&waits); err != nil {
			return false, err
		}
		if waits {
			_, ended := watcher.conn.Exec(ctx, "select pg_terminate_backend($1)", pid)
			<-committed
			return true, ended
		}
	}
}

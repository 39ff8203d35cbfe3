package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

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
	session, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.RuntimeParams["synchronous_commit"] = "on"
	})
	if err != nil {
		return false, err
	}
	defer session.Close()
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

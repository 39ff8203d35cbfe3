package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/postgres/sql"
)

// promoteInterval is how often Promote looks whether the server is a primary, wakeInterval how often it wakes the
// startup process until it is.
const (
	promoteInterval = 5 * time.Millisecond
	wakeInterval    = 50 * time.Millisecond
)

// Promote makes a standby a primary and returns when it takes writes. It first
// replays all WAL that it has. The checkpoint that follows a promotion goes on in
// the background; until it is written, the control file has the former timeline.
// When ctx ends, the promotion may go on. begun is called when the server has been told, if it is not nil.
//
// A startup process whose last receiver ends at the same moment may take the signal to promote for that of the
// receiver's end, and then waits for wal_retrieve_retry_interval before it looks for a promotion
// (WaitForWALToBecomeAvailable in xlogrecovery.c, PostgreSQL 17). So it is woken.
func (s *Session) Promote(ctx context.Context, begun func()) error {
	told, err := sql.Value[bool](ctx, s.conn, "promote the server", "select pg_promote(wait => false)")
	if err != nil {
		return err
	}
	if !told {
		return errors.New("promote the server: it could not be told to")
	}
	if begun != nil {
		begun()
	}
	woken := time.Now()
	for {
		recovers, err := sql.Value[bool](ctx, s.conn, "wait for the promotion", "select pg_is_in_recovery()")
		if err != nil {
			return err
		}
		if !recovers {
			return nil
		}
		if time.Since(woken) > wakeInterval {
			woken = time.Now()
			_ = s.WakeIdle(ctx) // refused where the promotion is under way: it needs no waking then
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the promotion: %w", ctx.Err())
		case <-time.After(promoteInterval):
		}
	}
}

// WakeIdle has the startup process of a standby look for WAL at once, where it waits for some, and not only after
// wal_retrieve_retry_interval: a request to pause wakes it (pg_wal_replay_pause in xlogfuncs.c), and is taken back in
// the same statement. A pause that somebody wants stays: it is looked for there, too.
func (s *Session) WakeIdle(ctx context.Context) error {
	const statement = `select pg_wal_replay_pause(), pg_wal_replay_resume()
		where not pg_is_wal_replay_paused() and exists (select from pg_stat_activity
		where backend_type = 'startup' and wait_event = any (string_to_array($1, ' ')))`
	_, err := s.conn.Exec(ctx, statement, waitsForWAL)
	return err
}

// PauseReplay has a standby replay no more WAL, until ResumeReplay, a promotion, or its end. It receives WAL as
// before.
func (s *Session) PauseReplay(ctx context.Context) error {
	return sql.Do(ctx, s.conn, "pause replay", "select pg_wal_replay_pause()")
}

// ResumeReplay has a standby go on. A server that is a primary by now has gone on already.
func (s *Session) ResumeReplay(ctx context.Context) error {
	const statement = "do $$ begin if pg_is_in_recovery() then perform pg_wal_replay_resume(); end if; end $$"
	return sql.Do(ctx, s.conn, "resume replay", statement)
}

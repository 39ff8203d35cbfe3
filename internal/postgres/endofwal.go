package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/wal"
)

// What a startup process waits for when it has no more WAL, by wait_event (the
// same names in PostgreSQL 15 to 18): RecoveryRetrieveRetryInterval before it looks again, RecoveryWalStream
// while it takes a receiver for running or about to. It comes
// to either only after it has read pg_wal to its end once.
const waitsForWAL = "RecoveryRetrieveRetryInterval RecoveryWalStream"

// waitsPaused is what it waits for while replay is paused.
const waitsPaused = "RecoveryPause"

// isForWAL says that a wait of the startup process is one for WAL.
func isForWAL(wait string) bool { return wait != "" && strings.Contains(waitsForWAL, wait) }

// EndOfWAL is one look at how far the WAL goes that this server has: lsn is the
// end of its last complete record. It is known on a standby only when no
// receiver runs and everything there is has been replayed; else lsn is how far
// it has got. On a primary it is the end of what is on disk. It is for after
// a Revoke and StopReceiving, so that no receiver may come in between.
//
// The wait alone does not prove it. When a receiver ends shortly after another
// attempt to stream has failed, the startup process waits before it reads what that
// receiver has left (WaitForWALToBecomeAvailable in xlogrecovery.c), which may be
// megabytes. So what has been received must have been replayed as well, but for a last
// record of which a part is missing. If there is more to replay, the startup
// process is woken. If somebody has paused replay, it goes on: else this instance could not vote
// for as long as that lasts.
func (s *Session) EndOfWAL(ctx context.Context) (lsn wal.LSN, known bool, err error) {
	const look = `select pg_is_in_recovery(), exists (select from pg_stat_activity where backend_type = 'walreceiver'),
		coalesce((select wait_event from pg_stat_activity where backend_type = 'startup'), '')`
	var recovers, receives bool
	var wait string
	if err := s.conn.QueryRow(ctx, look).Scan(&recovers, &receives, &wait); err != nil {
		return 0, false, fmt.Errorf("look for the end of WAL: %w", err)
	}
	if !recovers {
		if lsn, err = s.FlushedWAL(ctx); err != nil {
			return 0, false, fmt.Errorf("look for the end of WAL: %w", err)
		}
		return lsn, true, nil
	}
	// The position is asked for after the wait was seen, never before.
	at, err := s.tail(ctx)
	if err != nil {
		return 0, false, fmt.Errorf("look for the end of WAL: %w", err)
	}
	if !receives && wait == waitsPaused {
		return at.replayed, false, s.ResumeReplay(ctx)
	}
	if receives || !isForWAL(wait) {
		return at.replayed, false, nil
	}
	more, err := s.moreToReplay(ctx, at)
	if err == nil && more {
		err = s.wakeStartup(ctx)
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for the end of WAL: %w", err)
	}
	return at.replayed, !more, nil
}

// tail is where a standby's replay is in the WAL that it has.
type tail struct {
	replayed, received wal.LSN
	pages              wal.Pages
}

func (s *Session) tail(ctx context.Context) (tail, error) {
	const query = `with at as materialized (
			select pg_last_wal_replay_lsn() as replayed, pg_last_wal_receive_lsn() as received)
		select (replayed - '0/0')::bigint, coalesce((received - '0/0')::bigint, 0),
		current_setting('wal_block_size')::bigint,
		(select setting::bigint from pg_settings where name = 'wal_segment_size') from at`
	var t tail
	err := s.conn.QueryRow(ctx, query).Scan(&t.replayed, &t.received, &t.pages.Page, &t.pages.Segment)
	return t, err
}

// moreToReplay says whether a whole record has been received after the last
// replayed one. A record begins with its length in bytes (xlogrecord.h).
func (s *Session) moreToReplay(ctx context.Context, t tail) (bool, error) {
	begin := t.pages.Record(t.replayed)
	if t.received < begin.Add(4) {
		return false, nil
	}
	file, err := s.walFile(ctx, t)
	if err != nil {
		return false, err
	}
	var head []byte
	const read = "select pg_read_binary_file('pg_wal/' || $1, $2, 4)"
	if err := s.conn.QueryRow(ctx, read, file, uint64(begin)%t.pages.Segment).Scan(&head); err != nil {
		return false, err
	}
	if len(head) < 4 {
		return false, fmt.Errorf("%s ends before %s", file, t.replayed)
	}
	return t.pages.RecordEnd(begin, binary.LittleEndian.Uint32(head)) <= t.received, nil
}

// walFile is the file that the startup process would read on: that of the newest
// timeline of which it can know.
func (s *Session) walFile(ctx context.Context, t tail) (string, error) {
	const query = `select name from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$' and substr(name, 9) = $1
		and substr(name, 1, 8) <= greatest(
			(select max(substr(name, 1, 8)) from pg_ls_waldir() where name ~ '^[0-9A-F]{8}[.]history$'),
			(select lpad(upper(to_hex(timeline_id)), 8, '0') from pg_control_checkpoint()),
			(select lpad(upper(to_hex(min_recovery_end_timeline)), 8, '0') from pg_control_recovery()))
		order by 1 desc limit 1`
	var name string
	err := s.conn.QueryRow(ctx, query, t.fileSuffix()).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("the WAL file of %s is missing", t.replayed)
	}
	return name, err
}

// fileSuffix is the name of the replayed position's file but for the timeline.
func (t tail) fileSuffix() string { return wal.SegmentAt(0, t.replayed, t.pages.Segment).String()[8:] }

// wakeStartup makes the startup process look for WAL now and not at the end of
// wal_retrieve_retry_interval: a request to pause wakes it (pg_wal_replay_pause in
// xlogfuncs.c), and is taken back in the same statement.
func (s *Session) wakeStartup(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, "select pg_wal_replay_pause(), pg_wal_replay_resume()")
	return err
}

// EndReaders ends the transactions of clients on a standby if replay waits for
// them, and says how many. A startup process that waits for a reader does so by
// the limits it had when it began to wait: it does not see a reload before it is
// done (ResolveRecoveryConflictWithVirtualXIDs in standby.c), so with -1 that would last
// for as long as the reader does.
func (s *Session) EndReaders(ctx context.Context) (n int, err error) {
	const statement = `select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
		where backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()
		and exists (select from pg_stat_activity where backend_type = 'startup'
			and (wait_event like 'RecoveryConflict%' or wait_event_type in ('Lock', 'BufferPin')))`
	if err := s.conn.QueryRow(ctx, statement).Scan(&n); err != nil {
		return 0, fmt.Errorf("end the readers that replay waits for: %w", err)
	}
	return n, nil
}

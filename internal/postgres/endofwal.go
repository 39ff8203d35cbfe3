package postgres

import (
	"context"
	"fmt"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// What a startup process waits for when it has no more WAL, by wait_event (the
// same names in PostgreSQL 15 to 18): RecoveryRetrieveRetryInterval before it looks again, RecoveryWalStream
// while it takes a receiver for running or about to. It comes
// to either only after it has read pg_wal to its end once.
const waitsForWAL = "RecoveryRetrieveRetryInterval RecoveryWalStream"

// End is how far the WAL goes that a server has.
type End struct {
	// LSN is the end of its last whole record.
	LSN wal.LSN
	// Known says that it goes no further: nothing is received.
	Known bool
	// Unreplayed is how many bytes up to there are to be replayed yet.
	Unreplayed uint64
	// Ragged says that more was received than that: the beginning of a record whose rest is not here.
	Ragged bool
}

// EndOfWAL is one look at how far the WAL goes that this server has. It is known when no receiver runs, and is where
// replay ends once it has come to the end of pg_wal; else it is how far that goes by now. On a primary it is the end
// of what is on disk. It is for after a Revoke and StopReceiving, so that no receiver may come in between.
//
// Nothing is waited for: a server may have hours of WAL to replay, or be told to wait with it, and its vote is needed
// now. What a receiver has written is on disk when that ends (WalRcvDie in walreceiver.c). Where it had got to is in
// the middle of a record as a rule, and before what has been replayed where it has just begun. So the records are read
// that are there, as replay will read them: from one on that ends shortly before, or after the last replayed one.
//
// When a receiver ends shortly after another attempt to stream has failed, the startup process waits before it reads
// what that receiver has left (WaitForWALToBecomeAvailable in xlogrecovery.c). If there is more to replay, it is woken.
// A pause of replay lasts: see HastenReplay.
func (s *Session) EndOfWAL(ctx context.Context) (End, error) {
	end, err := endOfWAL(ctx, s)
	if err != nil {
		return End{}, fmt.Errorf("look for the end of WAL: %w", err)
	}
	return end, nil
}

func endOfWAL(ctx context.Context, s *Session) (End, error) {
	const look = `select pg_is_in_recovery(), exists (select from pg_stat_activity where backend_type = 'walreceiver')`
	var recovers, receives bool
	if err := s.conn.QueryRow(ctx, look).Scan(&recovers, &receives); err != nil {
		return End{}, err
	}
	if !recovers {
		lsn, err := s.FlushedWAL(ctx)
		return End{LSN: lsn, Known: true}, err
	}
	// The position is asked for after the receiver was seen to be gone, never before.
	at, err := tailOf(ctx, s)
	if err != nil {
		return End{}, err
	}
	lsn, whole, err := at.lastRecord(ctx, s, receives)
	if err != nil {
		return End{}, err
	}
	end := End{
		LSN: lsn, Known: whole && !receives, Unreplayed: lsn.Since(at.replayed), Ragged: at.received > lsn,
	}
	if end.Known && end.Unreplayed > 0 {
		err = s.WakeIdle(ctx)
	}
	return end, err
}

// tail is where a standby's replay is in the WAL that it has.
type tail struct {
	replayed, received wal.LSN
	pages              wal.Pages
}

func tailOf(ctx context.Context, s *Session) (tail, error) {
	const query = `with at as materialized (
			select pg_last_wal_replay_lsn() as replayed, pg_last_wal_receive_lsn() as received)
		select (replayed - '0/0')::bigint, coalesce((received - '0/0')::bigint, 0),
		current_setting('wal_block_size')::bigint,
		(select setting::bigint from pg_settings where name = 'wal_segment_size') from at`
	var t tail
	err := s.conn.QueryRow(ctx, query).Scan(&t.replayed, &t.received, &t.pages.Page, &t.pages.Segment)
	return t, err
}

// mostRead is how much WAL one look for its end reads: where nothing has been received since the server was started,
// all is read that is to be replayed, and the next look goes on.
const mostRead = 64 << 20

// read is how far the WAL has been read, for as long as that is what has been received.
type read struct{ received, end wal.LSN }

// lastRecord is where the last whole record ends. It is not whole where there is more to read. Of what is received
// meanwhile only what has been flushed counts.
func (t tail) lastRecord(ctx context.Context, s *Session, receives bool) (end wal.LSN, whole bool, err error) {
	files := walFiles{session: s, pages: t.pages}
	records := wal.Records{Pages: t.pages, Read: func(at wal.LSN, length uint64) ([]byte, error) {
		return files.read(ctx, at, length)
	}}
	from, err := records.Near(t.replayed, t.received)
	if err != nil {
		return 0, false, err
	}
	if s.read.received == t.received {
		from = max(from, s.read.end)
	}
	limit := wal.MaxLSN
	if receives {
		limit = max(t.received, from)
	}
	if end, whole, err = records.After(from, limit, mostRead); err == nil {
		s.read = read{t.received, end}
	}
	return end, whole, err
}

// walFiles read pg_wal. The server is asked, and the folder not read: who asks must be able to stop waiting for a disk
// that hangs.
type walFiles struct {
	session *Session
	pages   wal.Pages
	// suffix is the name of the segment that was read last, but for the timeline, name its file, "" for none.
	suffix, name string
}

// read reads what is there of a segment from a position on; nothing where there is no file.
func (f *walFiles) read(ctx context.Context, at wal.LSN, length uint64) ([]byte, error) {
	if suffix := fileSuffix(at, f.pages.Segment); suffix != f.suffix {
		name, err := f.file(ctx, suffix)
		if err != nil {
			return nil, err
		}
		f.suffix, f.name = suffix, name
	}
	if f.name == "" {
		return nil, nil
	}
	var bytes []byte
	const query = "select pg_read_binary_file('pg_wal/' || $1, $2, $3, true)"
	err := f.session.conn.QueryRow(ctx, query, f.name, uint64(at)%f.pages.Segment, length).Scan(&bytes)
	return bytes, err
}

// fileSuffix is the name of a position's file but for the timeline.
func fileSuffix(at wal.LSN, segment uint64) string { return wal.SegmentAt(0, at, segment).String()[8:] }

// file is the file of a segment that the startup process would read: that of the newest timeline of which it can
// know; "" where there is none.
func (f *walFiles) file(ctx context.Context, suffix string) (string, error) {
	const query = `select coalesce(max(name), '') from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'
		and substr(name, 9) = $1 and substr(name, 1, 8) <= greatest(
			(select max(substr(name, 1, 8)) from pg_ls_waldir() where name ~ '^[0-9A-F]{8}[.]history$'),
			(select lpad(upper(to_hex(timeline_id)), 8, '0') from pg_control_checkpoint()),
			(select lpad(upper(to_hex(min_recovery_end_timeline)), 8, '0') from pg_control_recovery()))`
	var name string
	err := f.session.conn.QueryRow(ctx, query, suffix).Scan(&name)
	return name, err
}

// HastenReplay has a standby that must not wait replay all that it has: a pause ends, and so do readers that replay
// waits for, if it may end them.
func (s *Session) HastenReplay(ctx context.Context, readers bool) error {
	if err := s.ResumeReplay(ctx); err != nil || !readers {
		return err
	}
	_, err := s.EndReaders(ctx)
	return err
}

// EndReaders ends the transactions of clients on a standby if replay waits for
// them, and says how many. A startup process that waits for a reader does so by
// the limits it had when it began to wait: it does not see a reload before it is
// done (ResolveRecoveryConflictWithVirtualXIDs in standby.c), so with -1 that would last
// for as long as the reader does. One whose activity is not tracked may have a transaction.
func (s *Session) EndReaders(ctx context.Context) (n int, err error) {
	const statement = `select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity
		where backend_type = 'client backend' and (xact_start is not null or state = 'disabled')
		and pid <> pg_backend_pid()
		and exists (select from pg_stat_activity where backend_type = 'startup'
			and (wait_event like 'RecoveryConflict%' or wait_event_type in ('Lock', 'BufferPin')))`
	return sql.Value[int](ctx, s.conn, "end the readers that replay waits for", statement)
}

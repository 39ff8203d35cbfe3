package take

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// SessionOptions say of which server the volume is to be cut.
type SessionOptions struct {
	// Server is whom to ask, as a role that may execute pg_backup_start and pg_backup_stop.
	Server *pgconn.Config
	// Term is that in which it is taken, Trigger why.
	Term    uint64
	Trigger string
	// System is the system identifier of the archive, "" for any.
	System string
	// Volume is what is cut, as the server knows it: no tablespace may be elsewhere. "" is any.
	Volume string
}

// Session is the connection of a primary in which a backup was begun and is to be stopped (PostgreSQL 17 documentation,
// 25.3.4). Between the two, the snapshot is cut. Where it ends before, PostgreSQL ends the backup too.
type Session struct {
	conn   *pgconn.PgConn
	backup format.Backup
}

// BeginSession begins a backup. It may take as long as a checkpoint.
func BeginSession(ctx context.Context, o SessionOptions) (*Session, error) {
	conn, err := pgconn.ConnectConfig(ctx, o.Server)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.Server.Host, err)
	}
	s := &Session{conn: conn, backup: format.Backup{
		ID: newID(time.Now()), Type: format.TypeSnapshot, Term: o.Term, Trigger: o.Trigger, Started: time.Now().UTC(),
	}}
	if err := s.begin(ctx, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("begin a backup: %w", err)
	}
	return s, nil
}

func (s *Session) begin(ctx context.Context, o SessionOptions) error {
	row, err := s.ask(ctx, "select pg_is_in_recovery(), (select system_identifier from pg_control_system()), "+
		"(select string_agg(pg_tablespace_location(oid), ', ') from pg_tablespace "+
		"where not pg_tablespace_location(oid) in ('', $1) "+
		"and not starts_with(pg_tablespace_location(oid), $1 || '/'))",
		o.Volume)
	switch {
	case err != nil:
		return err
	case row[0] != "f":
		return errors.New("the server is no primary any more")
	case o.System != "" && row[1] != o.System:
		return fmt.Errorf("the server is of the database system %s, and the archive of %s: nothing is cut",
			row[1], o.System)
	case row[2] != "" && o.Volume != "":
		return fmt.Errorf("it has tablespaces that are not on the volume, and so not in a snapshot of it: %s", row[2])
	}
	version, _, _ := strings.Cut(s.conn.ParameterStatus("server_version"), " ")
	s.backup.SystemIdentifier, s.backup.ServerVersion = row[1], version
	row, err = s.ask(ctx, "select pg_backup_start($1, true)", "toban "+s.backup.ID)
	if err != nil {
		return err
	}
	s.backup.StartLSN, err = wal.ParseLSN(row[0])
	return err
}

// ID is that of the backup, and of no other.
func (s *Session) ID() string { return s.backup.ID }

// Holds is an error where the session has ended, so that what is cut from then on is of no use.
func (s *Session) Holds(ctx context.Context) error {
	if _, err := s.ask(ctx, "select pg_is_in_recovery()"); err != nil {
		return fmt.Errorf("the session of the backup %s has ended: %w", s.backup.ID, err)
	}
	return nil
}

// Stop stops the backup, when the snapshot is cut.
func (s *Session) Stop(ctx context.Context) (format.Snapshot, error) {
	row, err := s.ask(ctx, "select lsn, labelfile, "+ServerClock+
		" from pg_backup_stop(false)") // our archiver is not PostgreSQL's
	if err != nil {
		return format.Snapshot{}, fmt.Errorf("stop the backup %s: %w", s.backup.ID, err)
	}
	b := s.backup
	b.Stopped = time.Now().UTC()
	if at, err := time.Parse(time.RFC3339Nano, row[2]); err == nil && at.After(b.Stopped) {
		b.Stopped = at // what is in the backup was committed by then
	}
	if b.StopLSN, err = wal.ParseLSN(row[0]); err != nil {
		return format.Snapshot{}, fmt.Errorf("stop the backup %s: %w", b.ID, err)
	}
	if b.StartTimeline, err = timelineOfLabel(row[1]); err != nil {
		return format.Snapshot{}, fmt.Errorf("stop the backup %s: %w", b.ID, err)
	}
	b.StopTimeline = b.StartTimeline // a primary stays on its timeline for as long as its sessions last
	return format.Snapshot{Backup: b, BackupLabel: row[1]}, nil
}

// Close ends the session, and with it the backup if it was not stopped.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.conn.Close(ctx)
}

// ask is the one row of the answer to a question.
func (s *Session) ask(ctx context.Context, question string, args ...string) ([]string, error) {
	var values [][]byte
	for _, arg := range args {
		values = append(values, []byte(arg))
	}
	result := s.conn.ExecParams(ctx, question, values, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	if len(result.Rows) != 1 {
		return nil, fmt.Errorf("the server answers with %d rows", len(result.Rows))
	}
	var row []string
	for _, value := range result.Rows[0] {
		row = append(row, string(value))
	}
	return row, nil
}

// timelineOfLabel is the timeline that a backup_label says it began on.
func timelineOfLabel(label string) (wal.Timeline, error) {
	for line := range strings.Lines(label) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "START TIMELINE: "); ok {
			number, err := strconv.ParseUint(text, 10, 32)
			return wal.Timeline(number), err
		}
	}
	return 0, errors.New("the backup_label does not say on which timeline it began")
}

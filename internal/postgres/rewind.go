package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"toban.dev/internal/postgres/sql"
)

// Incomplete says whether a rewind of the data directory has begun and not come
// to its end, or whether it is of another major version than the programs.
// Such data can't be used, and Start refuses it; only a Clone cures it.
func (s *Server) Incomplete() (bool, error) {
	if _, is, err := s.former(); err != nil || is {
		return is, err
	}
	return exists(s.Data.marker())
}

// ErrSameTimeline says that a rewind had nothing to do, because the source's control file names the timeline that
// the data is of; or that it would go by a timeline that the source has left. Of a source that has been promoted
// and has not written its first checkpoint yet, PostgreSQL up to 15 takes the timeline before for the present one:
// then it may be tried again.
var ErrSameTimeline = errors.New("the source's control file names the same timeline, or one that it has left")

// ErrUnreached says that a rewind did not reach its source, or came while that started or stopped: the data is as it
// was, and a copy would not reach it either.
var ErrUnreached = errors.New("the source was not reached")

// Messages of pg_rewind (pg_rewind.c, the same in PostgreSQL 15 to 18). The
// second one comes just before the first change.
const (
	rewindSame   = "source and target cluster are on the same timeline"
	rewindWrites = "need to copy"
)

// unreached says by what libpq says (fe-connect.c, fe-misc.c) that no server was reached that takes sessions, or that
// the session broke. One that refuses this session, because of its number or its role, may take that of a copy.
func unreached(messages string) bool {
	_, refusal, refused := strings.Cut(messages, "FATAL:")
	signs := []string{
		"error: connection to server", "could not translate host name", "server closed the connection",
		"no connection to the server", "SSL SYSCALL error", "could not receive data from server",
	}
	if refused { // it is starting up, shutting down, …
		messages, signs = refusal, []string{"the database system is ", "terminating connection due to"}
	}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(messages, sign) })
}

// Rewind makes the data follow the history of a running source, by copying
// what differs from it since their histories parted (pg_rewind). The server
// must not run. It rewrites the configuration files: Configure and
// SetStandby come after it. After an error see Incomplete: if it says no, the data is as it was.
func (s *Server) Rewind(ctx context.Context, source Upstream, progress io.Writer) error {
	if err := s.prepareRewind(ctx); err != nil {
		return fmt.Errorf("prepare the rewind: %w", err)
	}
	if s.unsettled(ctx, source) {
		return fmt.Errorf("wait for the source's first checkpoint: %w", ErrSameTimeline)
	}
	if err := WriteFile(s.Data.marker(),
		[]byte("pg_rewind has begun and not ended: this data is not whole\n"), 0o600); err != nil {
		return err
	}
	var messages bytes.Buffer
	cmd := s.Programs.command(ctx, "pg_rewind", "--target-pgdata", s.Data.Path(), "--progress", "--no-sync",
		"--source-server", s.keys().copyingInfo(source, nameRewind)+" dbname=postgres")
	cmd.Env = append(cmd.Env, askingSource())
	if err := run(cmd, io.MultiWriter(progress, &messages)); err != nil {
		if !untouched(cmd, messages.String()) {
			return err
		}
		if unreached(messages.String()) {
			err = fmt.Errorf("%w: %w", ErrUnreached, err)
		}
		return errors.Join(err, s.Data.unmark())
	}
	if strings.Contains(messages.String(), rewindSame) {
		return errors.Join(fmt.Errorf("pg_rewind: %w", ErrSameTimeline), s.Data.unmark())
	}
	if err := SyncData(s.Data.Path()); err != nil {
		return err
	}
	return s.Data.unmarkAll()
}

// askingSource has a session with a source find nothing but PostgreSQL's own there.
func askingSource() string { return sql.OptionsVariable(sql.Settings(RoleReplication, nil)) }

// unsettled says that a source has not written a checkpoint since its promotion. Data that was rewound by its former
// timeline can't be started: "requested timeline 3 does not contain minimum recovery point 0/60568B8 on
// timeline 1". What can't be learned is left to pg_rewind.
func (s *Server) unsettled(ctx context.Context, source Upstream) bool {
	const query = `select timeline_id = ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
		from pg_control_checkpoint()`
	cmd := s.Programs.command(ctx, "psql", "--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--command",
		query, s.keys().copyingInfo(source, nameRewind)+" dbname=postgres")
	cmd.Env = append(cmd.Env, askingSource())
	var out strings.Builder
	cmd.Stdout = &out
	return Children.Run(cmd) == nil && strings.TrimSpace(out.String()) == "f"
}

// untouched says whether a pg_rewind that failed has ended by itself before it
// changed anything, for example because it could not connect.
func untouched(cmd *exec.Cmd, messages string) bool {
	return cmd.ProcessState != nil && cmd.ProcessState.Exited() && !strings.Contains(messages, rewindWrites)
}

// prepareRewind makes way for pg_rewind, which lets a server that was not
// stopped in order recover first, alone (postgres --single). That does not
// work as a standby, and it ends with a checkpoint, which must not remove the
// WAL that pg_rewind then reads: from the last checkpoint before the fork on.
func (s *Server) prepareRewind(ctx context.Context) error {
	incomplete, err := s.Incomplete()
	if err != nil {
		return err
	}
	if incomplete {
		return errIncomplete
	}
	if err := s.clear(ctx); err != nil {
		return err
	}
	control, err := s.Control(ctx)
	if err != nil {
		return err
	}
	if control.State == "shut down" || control.State == "shut down in recovery" {
		return nil
	}
	if err := s.Data.SetStandby(false); err != nil {
		return err
	}
	return s.Data.keepWAL()
}

// keepWAL makes the next start remove no WAL. Configure undoes it.
func (d DataDirectory) keepWAL() error {
	path := filepath.Join(d.Path(), "postgresql.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	return WriteFile(path, append(text, "wal_keep_size = '1000GB'\n"...), 0o600)
}

var errIncomplete = errors.New("the data directory is not whole: a rewind has not come to its end, or it is of " +
	"another version; only a new copy helps")

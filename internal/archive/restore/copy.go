package restore

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
)

// CopyOptions say what is run.
type CopyOptions struct {
	// Folder is that of a Restore, Run one with a short name, for the Unix socket.
	Folder, Run string
	Programs    postgres.Programs
	// Parameters are those that extensions of the database need.
	Parameters map[string]string
	// Log gets what the server says.
	Log io.Writer
}

// RunCopy runs the server of data that Restore has made, until ctx ends. It listens on a Unix socket in Run only, lets
// in whoever may open that, and runs nothing of what is in the database by itself. An error says that it did not run
// until then.
func RunCopy(ctx context.Context, o CopyOptions) error {
	s := newScratch(o.Programs, o.Folder, o.Run, o.Parameters, o.Log)
	defer s.kill(ctx)
	if err := s.restart(ctx); err != nil {
		return fmt.Errorf("start the restored copy: %w", err)
	}
	running, cancel := WhileRunning(ctx, s.process)
	defer cancel()
	<-running.Done()
	if ctx.Err() == nil {
		return fmt.Errorf("the server of the restored copy has ended: %w", context.Cause(running))
	}
	return nil
}

// ConnectCopy opens a superuser's session with a copy whose socket is in a folder.
func ConnectCopy(ctx context.Context, programs postgres.Programs, run, database string) (*pgx.Conn, error) {
	return connectSuperuser(ctx, &postgres.Server{Programs: programs, Run: run, Port: scratchPort}, database)
}

// CopyEnvironment leads PostgreSQL's own programs to the same (PostgreSQL 17 documentation, 34.15).
func CopyEnvironment(programs postgres.Programs, run string) []string {
	return []string{
		"PGHOST=" + run, "PGPORT=" + strconv.Itoa(scratchPort), "PGUSER=" + naming.RoleSuperuser,
		optionsVariable(programs.Major),
	}
}

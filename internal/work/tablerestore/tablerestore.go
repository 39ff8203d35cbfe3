package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
)

// Connect opens a superuser's session in a database, with nothing but pg_catalog in search_path.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

// Options say what is brought over, from where and to where.
type Options struct {
	// Copy leads to the restored server, Primary to the one that takes writes.
	Copy, Primary Connect
	// CopyEnv and PrimaryEnv are libpq's environment (PGHOST, PGPORT, PGSSLMODE, …) for PostgreSQL's programs. That of
	// the copy names a superuser; that of the primary names nobody: a role of this run is added.
	CopyEnv, PrimaryEnv []string
	Programs            postgres.Programs
	// Database is where the objects are. Tables are "schema.name", or "name" in public, quoted as in SQL where that is
	// needed. With neither Tables nor Schemas it is the whole database.
	Database        string
	Tables, Schemas []string
	// Suffix tells this restore from others, in the names of all that it makes.
	Suffix string
	// Replace says that what is restored takes the place of what is there; else it stays beside.
	Replace bool
	// Folder is an empty one, or one that is not there, with room for a dump of what is asked for.
	Folder string
	Log    *slog.Logger
	// Step, where it is set, is told what is being done.
	Step func(words string)
	// At, where it is set, is told every point that the run has passed. Tests end the process there.
	At func(point string)
}

// Result is what has been brought over.
type Result struct {
	Objects []Object `json:"objects,omitempty"`
}

// Object is a table, a schema or a database that was asked for.
type Object struct {
	// Name is its name, As the one under which the restored one is now.
	Name string `json:"name"`
	As   string `json:"as"`
	// Kept is where the rows are that it has replaced, "" where there are none.
	Kept string `json:"kept,omitempty"`
	// Rows and Present are how many rows the restored table and the present one have, or had when they were compared.
	Rows    int64 `json:"rows"`
	Present int64 `json:"present,omitempty"`
	// OnlyRestored and OnlyPresent are how many rows only one of them has, Different how many have the same key and are
	// not the same.
	OnlyRestored int64 `json:"onlyRestored,omitempty"`
	OnlyPresent  int64 `json:"onlyPresent,omitempty"`
	Different    int64 `json:"different,omitempty"`
	// Compared says that these three are known.
	Compared bool `json:"compared,omitempty"`
	// Says is what is to be known about it besides.
	Says string `json:"says,omitempty"`
}

// ErrRefused says that another try would come to the same end. The words behind it say what to do.
var ErrRefused = errors.New("refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

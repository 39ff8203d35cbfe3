// Package finish_test runs what is done after a change of the libraries or of the programs against a real PostgreSQL on
// this machine, of its own version and of the newest one.
package finish_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/work/maintenance"
	"toban.dev/test/local/single"
	"toban.dev/test/releases"
)

// server is a PostgreSQL with a database shop, whose texts ICU sorts.
type server struct {
	*testing.T
	*single.Server
}

// each runs a test with the version of this machine, and with the newest.
func each(t *testing.T, test func(*server)) {
	t.Run("installed", func(t *testing.T) { test(begin(t, single.Start(t))) })
	t.Run("18", func(t *testing.T) {
		programs, err := releases.Programs(t.Context(), 18)
		if err != nil {
			t.Skip(err)
		}
		test(begin(t, single.StartOf(t, programs)))
	})
}

func begin(t *testing.T, on *single.Server) *server {
	t.Helper()
	s := &server{t, on}
	s.do("postgres", "create database shop template template0 locale_provider icu icu_locale 'en-u-kn' encoding 'UTF8'")
	return s
}

func (s *server) do(database, statements string) { s.Helper(); s.Do(s.T, database, statements) }

func (s *server) ask(query string) string { s.Helper(); return s.Ask(s.T, "shop", query) }

// connect is as the Job and the agent do.
func (s *server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	conn, err := s.Dial(ctx, database, "postgres", "")
	if err != nil {
		return nil, err
	}
	config := conn.Config()
	_ = conn.Close(ctx)
	config.RuntimeParams = sql.Settings("postgres", nil)
	return pgx.ConnectConfig(ctx, config)
}

// look is what the agent sees.
func (s *server) look() maintenance.Report {
	s.Helper()
	r, err := maintenance.Look(s.Context(), s.connect)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// job is the work of some parts.
func (s *server) job(parts ...maintenance.Part) *maintenance.Job {
	return &maintenance.Job{
		Connect: s.connect, Parts: parts, Patience: time.Minute, Log: slog.New(slog.DiscardHandler),
	}
}

// run does it to its end.
func (s *server) run(j *maintenance.Job) maintenance.Result {
	s.Helper()
	result, err := j.Run(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return result
}

// resort is another library: from now on ICU sorts "x10" before "x9", in the database and in its collations, whose
// versions on record are former ones.
func (s *server) resort() { s.Helper(); s.sortBy("en", "former") }

// sortBy gives all sort orders another locale, and a recorded version unless that is "".
func (s *server) sortBy(locale, recorded string) {
	s.Helper()
	column := map[bool]string{true: "iculocale", false: "locale"}[strings.Contains(s.Programs, "/15/")]
	version := ""
	if recorded != "" {
		version = fmt.Sprintf(", %%s = '%s'", recorded)
	}
	set := func(column string) string {
		if version == "" {
			return ""
		}
		return fmt.Sprintf(version, column)
	}
	s.do("shop", fmt.Sprintf(`update pg_database set dat%s = '%s' %s where datname = 'shop';
		update pg_collation set coll%s = '%s' %s where collname like 'own%%'`,
		column, locale, set("datcollversion"), column, locale, set("collversion")))
}

// numbered makes a table of texts x1, x2, …, with an index.
const numbered = `create table items (name text primary key, note text);
	insert into items select 'x' || i, 'n' || i % 100 from generate_series(1, 3000) i;
	create index items_note on items (note);`

// Package bring_test brings tables, schemas and databases over from one real PostgreSQL of this machine to another.
package bring_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/work/tablerestore"
	"toban.dev/test/local/single"
	"toban.dev/test/releases"
)

// suffix is that of the restores here.
const suffix = "restored_20261123_1200"

// pair is a server that runs, and what stands for one that was restored: it has what the first has had.
type pair struct {
	*testing.T
	primary, former *single.Server
	database        string
	folder          string
}

// each runs stories, each in a database of its own, with the version of this machine, or the one that is asked for: in
// make soak that is another one.
func each(t *testing.T, stories map[string]func(*pair)) {
	t.Helper()
	major := releases.Wanted()
	if major == 0 {
		run(t, single.Start(t), single.Start(t), stories)
		return
	}
	programs, err := releases.Programs(t.Context(), major)
	if err != nil {
		t.Fatal(err)
	}
	run(t, single.StartOf(t, programs), single.StartOf(t, programs), stories)
}

func run(t *testing.T, primary, former *single.Server, stories map[string]func(*pair)) {
	t.Helper()
	for _, s := range []*single.Server{primary, former} {
		s.Do(t, "postgres", "create role app login; create role other; create role reader; "+single.Loud)
	}
	t.Cleanup(func() {
		if strings.Contains(primary.Log(t), single.Secret) {
			t.Error("the server's log has the verifier of a restore's role")
		}
	})
	n := 0
	for name, story := range stories {
		n++
		database := fmt.Sprintf("app%d", n)
		t.Run(name, func(t *testing.T) {
			p := &pair{t, primary, former, database, t.TempDir()}
			p.on("postgres", "create database "+database+" owner app")
			story(p)
			if left := p.ask("select count(*) from pg_roles where rolname like 'toban_load%'"); left != "0" {
				t.Error("the role of the restore is left")
			}
			if left := p.ask("select count(*) from pg_namespace where nspname like 'toban_%'"); left != "0" {
				t.Error("a schema of the restore is left")
			}
		})
	}
}

// on runs statements on both servers.
func (p *pair) on(database, statements string) {
	p.Helper()
	p.primary.Do(p.T, database, statements)
	p.former.Do(p.T, database, statements)
}

// was is what both have had, as the role app.
func (p *pair) was(statements string) { p.Helper(); p.on(p.database, "set role app;"+statements) }

// then is what has become of it on the primary.
func (p *pair) then(statements string) {
	p.Helper()
	p.primary.Do(p.T, p.database, "set role app;"+statements)
}

func (p *pair) ask(query string) string { p.Helper(); return p.primary.Ask(p.T, p.database, query) }

// want fails the test unless a query on the primary gives a value.
func (p *pair) want(value, query string) {
	p.Helper()
	if got := p.ask(query); got != value {
		p.Errorf("%s gives %s, expected %s", query, got, value)
	}
}

func connect(s *single.Server) tablerestore.Connect {
	return func(ctx context.Context, database string) (*pgx.Conn, error) {
		conn, err := s.Dial(ctx, database, "postgres", "")
		if err != nil {
			return nil, err
		}
		config := conn.Config()
		_ = conn.Close(ctx)
		config.RuntimeParams = sql.Settings("postgres", nil)
		return pgx.ConnectConfig(ctx, config)
	}
}

// host is the folder with a server's socket.
func (p *pair) host(s *single.Server) string {
	p.Helper()
	return s.Ask(p.T, "postgres", "select current_setting('unix_socket_directories')")
}

func (p *pair) options(tables ...string) tablerestore.Options {
	p.Helper()
	port := func(s *single.Server) string { return "PGPORT=" + strconv.Itoa(int(s.Port)) }
	major, err := strconv.Atoi(p.primary.Ask(p.T, "postgres",
		"select current_setting('server_version_num')::int / 10000"))
	if err != nil {
		p.Fatal(err)
	}
	return tablerestore.Options{
		Copy: connect(p.former), Primary: connect(p.primary),
		CopyEnv:    []string{"PGHOST=" + p.host(p.former), port(p.former), "PGUSER=postgres"},
		PrimaryEnv: []string{"PGHOST=127.0.0.1", port(p.primary), "PGSSLMODE=require"},
		Programs:   postgres.Programs{Dir: p.primary.Programs, Major: major},
		Database:   p.database, Tables: tables, Suffix: suffix, Folder: filepath.Join(p.folder, "dump"),
		Log: slog.New(slog.DiscardHandler),
	}
}

// replace is the same, in place.
func (p *pair) replace(tables ...string) tablerestore.Options {
	p.Helper()
	o := p.options(tables...)
	o.Replace = true
	return o
}

// bring runs a restore to its end.
func (p *pair) bring(o tablerestore.Options) []tablerestore.Object {
	p.Helper()
	result, err := tablerestore.Run(p.Context(), o)
	if err != nil {
		p.Fatal(err)
	}
	return result.Objects
}

// one runs the restore of one object.
func (p *pair) one(o tablerestore.Options) tablerestore.Object {
	p.Helper()
	objects := p.bring(o)
	if len(objects) != 1 {
		p.Fatalf("it has brought %+v", objects)
	}
	return objects[0]
}

// refused fails the test unless a restore is refused with some words.
func (p *pair) refused(o tablerestore.Options, words ...string) {
	p.Helper()
	_, err := tablerestore.Run(p.Context(), o)
	if !errors.Is(err, tablerestore.ErrRefused) {
		p.Fatalf("it is not refused: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			p.Errorf("it says %q, and not %q", err, w)
		}
	}
}

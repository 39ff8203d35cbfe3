package server_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/cli/psql"
	"toban.dev/internal/naming"
)

// psql is a statement of a person by kubectl toban psql, as a role in a database.
func (n *node) psql(role, database, statement string) string {
	n.Helper()
	cmd := exec.CommandContext(within(n, deadline), filepath.Join(n.Programs.Dir, "psql"), "--no-psqlrc", "-Atc",
		statement)
	cmd.Env = []string{"PGHOST=" + n.Server.Run, fmt.Sprintf("PGPORT=%d", n.Port), "PGUSER=postgres",
		"PGDATABASE=" + database, psql.PSQLOptions(role)}
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.Fatalf("%s as %s: %v: %s", statement, role, err, out)
	}
	return strings.TrimSpace(string(out))
}

// traps are what an owner of a database can put there for whoever is superuser: the same as PostgreSQL's own, or what
// fits better.
const traps = `set role app;
	create function public.take() returns bool language plpgsql as $f$ begin
		perform set_config('role', 'none', false);
		if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
			execute 'alter role app superuser';
		end if;
		return true;
	end $f$;
	create function public.version() returns text language sql as $f$ select public.take()::text $f$;
	create function public.lower(varchar) returns text language sql as $f$ select public.take()::text $f$;
	create function public.pg_relation_size(text) returns text language sql as $f$ select public.take()::text $f$;
	create function public.same(varchar, varchar) returns bool language sql as $f$ select public.take() $f$;
	create operator public.= (function = public.same, leftarg = varchar, rightarg = varchar);
	alter database shop set search_path = public, pg_catalog;
	alter database shop set role = app;
	reset role;
	alter role postgres in database shop set search_path = public, pg_catalog;`

// An owner of a database can't have a person who opens a session there as the superuser run anything of his, as long as
// that person names nothing of his.
func TestAPersonsSessionRunsNothingOfAnApplication(t *testing.T) {
	n := server(t)
	n.do("create role app login")
	n.do("create database shop owner app")
	config := n.dial().Config()
	config.Database = "shop"
	conn, err := pgx.ConnectConfig(n.Context(), config)
	must(t, err)
	_, err = conn.Exec(n.Context(), traps, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
	for role, statement := range map[string]string{
		naming.RoleSuperuser: "select current_user, version() like 'PostgreSQL%', lower('X'::varchar), " +
			"pg_relation_size('pg_class')::text ~ '^[0-9]+$', 'a'::varchar = 'a'",
		"app": "select current_user, version() like 'PostgreSQL%', 'x', true, true",
	} {
		if got, want := n.psql(role, "shop", statement), role+"|t|x|t|t"; got != want {
			t.Errorf("%s gets %s, want %s", role, got, want)
		}
		if n.ask("select rolsuper from pg_roles where rolname = 'app'") != "false" {
			t.Errorf("the application's role has become a superuser by a session of %s", role)
		}
	}
}

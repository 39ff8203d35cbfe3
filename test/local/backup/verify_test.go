package backup_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/archive/restore"
)

// verify does the whole verification of a backup: it restores it, and then looks through it and asks.
func verify(t *testing.T, o restore.VerifyOptions, asked ...restore.Assertion) (restore.Report, error) {
	t.Helper()
	report, err := restore.Verify(t.Context(), o)
	if err != nil {
		return report, err
	}
	more, err := restore.Inspect(t.Context(), restore.InspectOptions{Backup: report.Backup, Folder: o.Folder,
		Run:      o.Run,
		Programs: o.Programs, Parameters: o.Parameters, Assertions: asked, Workers: o.Workers, Log: o.Log})
	report.Steps, report.Answers = append(report.Steps, more.Steps...), more.Answers
	return report, err
}

// as runs statements as a role, in a database.
func (n *node) as(role, database, statements string) {
	n.Helper()
	conn, err := pgx.Connect(n.Context(), fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable",
		n.Server.Run, n.Port, role, database))
	must(n, err)
	defer conn.Close(n.Context())
	_, err = conn.Exec(n.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(n, err)
}

// attack is what an application role puts into its database, for somebody with more rights to run. %s is a file that
// nobody but a superuser's program can make.
const attack = `
	create function evil() returns boolean language plpgsql as $$ begin
		execute 'copy (select 1) to program ''touch %[1]s''';
		return true;
	end $$;
	create function seize() returns boolean language plpgsql as $$ begin
		execute 'alter role app superuser';
		return true;
	end $$;
	create function write() returns boolean language plpgsql as $$ begin
		perform set_config('default_transaction_read_only', 'off', false);
		insert into kept values (2);
		return true;
	end $$;
	create function defined() returns boolean language plpgsql security definer set search_path = public as $$ begin
		return evil();
	end $$;
	create function caught() returns bigint language plpgsql as $$ begin
		begin perform evil(); exception when others then null; end;
		begin perform seize(); exception when others then null; end;
		begin perform write(); exception when others then null; end;
		return 1;
	end $$;
	create table kept (n int);
	insert into kept values (1);
	create table hidden (n int);
	insert into hidden values (1);
	alter table hidden enable row level security;
	alter table hidden force row level security;
	create view runs_a_program as select evil() as n;
	create view takes_a_role as select seize() as n;
	create view writes as select write() as n;
	create view as_its_owner as select defined() as n;
	create view hides_it as select caught() as n;
	create function count(integer) returns bigint language plpgsql as $$ begin perform evil(); return 7; end $$;
	create function indexed(n int) returns int language plpgsql immutable as $$ begin
		begin perform evil(); exception when others then null; end;
		return n;
	end $$;
	create index on kept (indexed(n));`

// settings are what it sets for every session in another database of its own.
const settings = `
	create table kept (n int);
	insert into kept values (1);
	create schema evil;
	create view evil.kept as select 1 as n union all select 5;
	alter database lent set role = app;
	alter database lent set search_path = evil, public;
	alter database lent set default_transaction_read_only = off;
	alter database lent set statement_timeout = 1;`

// Code that an application role has put into its database gains nothing by a verification: not by the assertions, nor
// by what we do ourselves. Honest assertions give what they should.
func TestAVerificationGivesNoRights(t *testing.T) {
	source := primary(t)
	source.do("create role app login")
	source.do("create database shop owner app")
	source.do("create database lent owner app connection limit 0")
	source.do("revoke connect on database shop from public")
	evidence := filepath.Join(source.Data.Volume, "a-program-has-run")
	source.as("app", "shop", fmt.Sprintf(attack, evidence))
	source.as("postgres", "lent", "set role app;"+settings)
	a := newArchive(t, source, "")
	b := a.take()
	a.archiveWAL()
	o, run := a.verification(b)
	ask := func(name, sql, want string) restore.Assertion {
		return restore.Assertion{Name: name, Database: "shop", SQL: sql, Want: &want}
	}
	inLent := ask("what is set for a database is not used",
		"select count(*), current_setting('transaction_read_only') from kept", "1")
	inLent.Database = "lent"
	report, err := verify(t, o,
		ask("honest", "SELECT count(*) > 0 FROM kept", "t"),
		ask("sees all rows", "select count(*) from hidden", "1"),
		inLent,
		ask("who", "select rolsuper or rolcreaterole or rolcreatedb or rolreplication from pg_roles "+
			"where rolname = current_user", "f"), ask("read only", "show transaction_read_only", "on"),
		ask("app", "select rolsuper from pg_roles where rolname = 'app'", "f"),
		ask("hides it", "select n from hides_it", "1"), ask("runs a program", "select n from runs_a_program", ""),
		ask("takes a role", "select n from takes_a_role", ""), ask("writes", "select n from writes", ""),
		ask("as its owner", "select n from as_its_owner", ""),
		ask("calls a better match", "select count(n) from kept", "1"),
	)
	if len(report.Answers) != 12 {
		t.Fatalf("%v: %+v\n%s", err, report, run.log)
	}
	for _, answer := range report.Answers[:7] {
		if answer.Problem != "" {
			t.Errorf("%s: %s", answer.Name, answer.Problem)
		}
	}
	for i, words := range []string{
		"external program", "", "read-only transaction", "external program", "external program",
	} {
		if answer := report.Answers[7+i]; !strings.Contains(answer.Problem, "ERROR: ") ||
			!strings.Contains(answer.Problem, words) {
			t.Errorf("%s: %+v", answer.Name, answer)
		}
	}
	for _, s := range report.Steps {
		if s.Name != restore.StepAsk && s.Problem != "" {
			t.Errorf("%s: %s", s.Name, s.Problem)
		}
	}
	if _, err := os.Stat(evidence); err == nil {
		t.Error("a program of the application role has run")
	}
}

package initjob_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/work/initjob"
	"toban.dev/test/local/single"
)

// plan with a source for each of the texts.
func plan(t *testing.T, texts ...string) initjob.Plan {
	t.Helper()
	p := initjob.Plan{Hosts: []string{"127.0.0.1"}, Database: "shop", Owner: "keeper", Extensions: []string{"pgcrypto"}}
	for i, text := range texts {
		path := filepath.Join(t.TempDir(), "source.sql")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		p.SQL = append(p.SQL, initjob.Source{Name: fmt.Sprintf("ConfigMap schema, key %d.sql", i+1), Path: path})
	}
	return p
}

func (s *server) job(t *testing.T, p initjob.Plan) *initjob.Job {
	t.Helper()
	return &initjob.Job{
		Plan: p, Port: s.Port, TLS: s.tls(t, naming.IdentityInstance), Password: "合言葉", Patience: time.Minute,
		Log: slog.New(slog.DiscardHandler),
	}
}

const table = "CREATE TABLE customers (id int PRIMARY KEY, name text);\nINSERT INTO customers VALUES (1, 'Aki');\n"

// more adds a row each time it runs.
const more = "INSERT INTO customers SELECT max(id) + 1, 'Yuki' FROM customers;\n"

func TestANewDatabaseIsWhatThePlanSays(t *testing.T) {
	s := start(t)
	must(t, s.job(t, plan(t, table, more, more)).Run(t.Context()))
	conn, err := s.Dial(t.Context(), "shop", "keeper", "合言葉")
	must(t, err)
	defer conn.Close(t.Context())
	for query, want := range map[string]string{
		"SELECT count(*)::text FROM customers": "3",
		"SELECT digest('x', 'md5')::text":      `\x9dd4e461268c8034f5c8564e155c67a6`,
		"SELECT string_agg(source, '|' ORDER BY done_at) FROM toban.init_step": "ConfigMap schema, key 1.sql|" +
			"ConfigMap schema, key 2.sql|ConfigMap schema, key 3.sql",
		"SELECT tableowner::text FROM pg_tables WHERE tablename = 'customers'":               "keeper",
		"SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = 'shop'":       "keeper",
		"SELECT pg_encoding_to_char(encoding)::text FROM pg_database WHERE datname = 'shop'": "UTF8",
		"SELECT (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication)::text FROM pg_roles WHERE rolname = " +
			"current_user": "false",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q (%v), want %q", query, got, err, want)
		}
	}
	if _, err := conn.Exec(t.Context(),
		"CREATE TABLE public.mine (); CREATE SCHEMA other; DELETE FROM mine"); err != nil {
		t.Errorf("the owner can't work in its database: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "DELETE FROM toban.init_step"); err == nil {
		t.Error("the owner can remove the record of what was done")
	}
}

func TestRunningAgainChangesNothing(t *testing.T) {
	s := start(t)
	p := plan(t, table, more)
	var verifiers []string
	for range 3 {
		must(t, s.job(t, p).Run(t.Context()))
		verifiers = append(verifiers,
			s.Ask(t, "postgres", "SELECT rolpassword FROM pg_authid WHERE rolname = 'keeper'"))
	}
	if got := s.Ask(t, "shop", "SELECT count(*) FROM customers"); got != "2" {
		t.Errorf("customers has %s rows, want 2", got)
	}
	if verifiers[0] != verifiers[2] {
		t.Error("the password was written again though it was the same")
	}
}

func TestTheRightPasswordIsSetWhereTheVolumeWasKept(t *testing.T) {
	s := start(t)
	p := plan(t, table)
	must(t, s.job(t, p).Run(t.Context()))
	again := s.job(t, p)
	again.Password = "another"
	must(t, again.Run(t.Context()))
	conn, err := s.Dial(t.Context(), "shop", "keeper", "another")
	must(t, err)
	_ = conn.Close(t.Context())
}

// A source that fails leaves nothing of itself, and what came before it stays
// and does not run again after the source has been mended.
func TestAFailingSourceCanBeMended(t *testing.T) {
	s := start(t)
	p := plan(t, table, more+"INSERT INTO customers VALUES (1, 'twice');\n")
	got := initjob.Report(s.job(t, p).Run(t.Context()))
	if got.Step != "ConfigMap schema, key 2.sql, line 2" ||
		!strings.Contains(got.Message, "duplicate key") || got.Done {
		t.Fatalf("result is %+v", got)
	}
	if n := s.Ask(t, "shop", "SELECT count(*) FROM customers"); n != "1" {
		t.Fatalf("customers has %s rows after the failure, want 1", n)
	}
	must(t, os.WriteFile(p.SQL[1].Path, []byte(more), 0o600))
	must(t, s.job(t, p).Run(t.Context()))
	if n := s.Ask(t, "shop", "SELECT count(*) FROM customers"); n != "2" {
		t.Errorf("customers has %s rows, want 2", n)
	}
}

func TestFailuresSayWhereAndWhy(t *testing.T) {
	s := start(t)
	s.Do(t, "postgres", "CREATE ROLE boss SUPERUSER; CREATE ROLE other")
	s.Do(t, "postgres", "CREATE DATABASE taken OWNER other")
	cases := map[string]struct {
		texts      []string
		edit       func(*initjob.Plan)
		step, word string
	}{
		"grammar, before anything ran": {
			[]string{"CREATE TABLE never (id int);\n\nCREATE TABEL x ();"}, nil,
			"ConfigMap schema, key 1.sql, line 3", `syntax error at or near "TABEL"`,
		},
		"a constraint that is checked at the end": {
			[]string{"CREATE TABLE d (a int UNIQUE DEFERRABLE INITIALLY DEFERRED);\nINSERT INTO d VALUES (1), (1);"},
			nil, "ConfigMap schema, key 1.sql", "duplicate key",
		},
		"more rights than the owner's": {
			[]string{"SELECT 1;\nRESET ROLE;\nCREATE ROLE evil SUPERUSER;"}, nil,
			"ConfigMap schema, key 1.sql, line 3", "superuser",
		},
		"becoming the superuser": {
			[]string{"SET SESSION AUTHORIZATION postgres;"}, nil,
			"ConfigMap schema, key 1.sql, line 1", "permission denied",
		},
		"an extension that is not there": {
			nil, func(p *initjob.Plan) { p.Extensions = []string{"no_such"} }, "extension no_such", "not available",
		},
		"a name with a line break": {
			nil, func(p *initjob.Plan) { p.Database = "a\nb" }, "database a\nb", "control character",
		},
		"a name of more bytes than PostgreSQL keeps": {
			nil, func(p *initjob.Plan) { p.Owner = strings.Repeat("ä", 32) }, "role " + strings.Repeat("ä", 32),
			"64 bytes",
		},
		"a role of someone else": {
			nil, func(p *initjob.Plan) { p.Owner = "boss" }, "role boss", "choose another spec.init.owner",
		},
		"a database of someone else": {
			nil, func(p *initjob.Plan) { p.Database = "taken" }, "database taken", `belongs to the role "other"`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := plan(t, c.texts...)
			if c.edit != nil {
				c.edit(&p)
			}
			before := s.Ask(t, "postgres", "SELECT count(*) FROM pg_authid")
			got := initjob.Report(s.job(t, p).Run(t.Context()))
			if got.Step != c.step || !strings.Contains(got.Message, c.word) {
				text, _ := json.Marshal(got)
				t.Errorf("result is %s, want step %q and a message with %q", text, c.step, c.word)
			}
			if after := s.Ask(t, "postgres", "SELECT count(*) FROM pg_authid"); strings.HasPrefix(c.step,
				"database taken") && after != before {
				t.Error("a role was made although the database belongs to someone else")
			}
		})
	}
}

// Who may name a Secret as a source may not be one who may read it: neither the result nor a log quotes it.
func TestNothingOfASecretIsQuoted(t *testing.T) {
	s := start(t)
	s.Do(t, "postgres", single.Loud)
	for name, c := range map[string]struct{ text, step, code string }{
		"a Secret that is no SQL": {"\n\nhunter2", "line 3", "42601"},
		"a value in a constraint's details": {
			"CREATE TABLE a (b text PRIMARY KEY);\nINSERT INTO a VALUES ('hunter2'), ('hunter2');", "line 2", "23505",
		},
		"a value in a constraint that is checked at the end": {
			"CREATE TABLE a (b text UNIQUE DEFERRABLE INITIALLY DEFERRED);\n" +
				"INSERT INTO a VALUES ('hunter2'), ('hunter2')",
			"1.sql", "23505",
		},
		"a value that is raised": {"DO $$ BEGIN RAISE 'it is hunter2'; END $$", "line 1", "P0001"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := plan(t, c.text)
			p.SQL[0].Secret = true
			job := s.job(t, p)
			job.Log = slog.New(slog.NewTextHandler(&log, nil))
			err := job.Run(t.Context())
			got := initjob.Report(err)
			if got.Done || !strings.HasSuffix(got.Step, c.step) || !strings.Contains(got.Message, c.code) {
				t.Errorf("result is %+v", got)
			}
			for where, text := range map[string]string{
				"the result": got.Step + got.Message, "the error": fmt.Sprint(err), "the Job's log": log.String(),
				"the server's log": s.Log(t),
			} {
				if strings.Contains(text, "hunter2") || strings.Contains(text, single.Secret) {
					t.Errorf("%s has it: %s", where, text)
				}
			}
		})
	}
	if left := s.Ask(t, "postgres", "SELECT count(*) FROM pg_db_role_setting WHERE setdatabase <> 0"); left != "0" {
		t.Error("the owner's sessions are still kept out of the server's log")
	}
	got := initjob.Report(s.job(t, plan(t, "hunter3")).Run(t.Context()))
	if !strings.Contains(got.Message, "hunter3") || !strings.Contains(s.Log(t), "hunter3") {
		t.Errorf("what is in a ConfigMap may be read, and makes an error plain: %+v", got)
	}
}

func TestASourceThatHasRunMustStayAsItWas(t *testing.T) {
	s := start(t)
	p := plan(t, table)
	must(t, s.job(t, p).Run(t.Context()))
	must(t, os.WriteFile(p.SQL[0].Path, []byte(table+more), 0o600))
	got := initjob.Report(s.job(t, p).Run(t.Context()))
	if got.Done || !strings.Contains(got.Message, "a source of its own") {
		t.Errorf("result is %+v", got)
	}
}

func TestAServerWithAnotherIdentityIsNotTrusted(t *testing.T) {
	s := start(t)
	j := s.job(t, plan(t))
	j.TLS = s.tls(t, "someone else")
	j.Patience = 300 * time.Millisecond
	got := initjob.Report(j.Run(t.Context()))
	if got.Step != "connect to the primary" || !strings.Contains(got.Message, "toban:instance") {
		t.Errorf("result is %+v", got)
	}
}

// The user's defaults are for the applications, not for the init Job.
func TestAUsersDefaultsDoNotEndTheWork(t *testing.T) {
	s := start(t)
	s.Do(t, "postgres", "ALTER SYSTEM SET default_transaction_read_only = on")
	s.Do(t, "postgres", "ALTER SYSTEM SET statement_timeout = '50ms'")
	s.Do(t, "postgres", "SELECT pg_reload_conf()")
	must(t, s.job(t, plan(t, table+"SELECT pg_sleep(0.2);")).Run(t.Context()))
}

//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// database is a PostgreSQL on the SampleDB shared, with its password's Secret.
func database(name, db, password string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: exp.wheel.jp/v1
kind: PostgreSQL
metadata: {name: %[1]s}
spec:
  db: %[2]s
  user: %[2]s
  password: %[1]s-password
  server: {name: shared}
  %[4]s
---
apiVersion: v1
kind: Secret
metadata: {name: %[1]s-password}
stringData: {postgresql_password: %[3]q}
`, name, db, password, strings.Join(more, "\n  "))
}

// pgReason waits until the condition Ready of a PostgreSQL has a reason.
func (s *story) pgReason(name, reason string) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "get", "pg", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason} `+
			`{.status.observedGeneration} {.metadata.generation} `+
			`{.status.conditions[?(@.type=="Ready")].message}`)
		if err != nil {
			return err
		}
		words := strings.SplitN(out, " ", 4)
		if len(words) < 4 || words[0] != reason || words[1] != words[2] {
			return fmt.Errorf("Ready of pg/%s: %s, want %s", name, out, reason)
		}
		return nil
	})
}

// as runs SQL on the server shared as an application would: over TLS, with a password.
func (s *story) as(user, password, database, sql string) (string, error) {
	return s.Kubectl(s.ctx, "exec", "shared-0", "-c", "postgresql", "--", "env", "PGPASSWORD="+password,
		"psql", "-X", "-h", "localhost", "-U", user, "-Atc", sql, database)
}

func (s *story) mustAs(user, password, database, sql string) string {
	s.Helper()
	out, err := s.as(user, password, database, sql)
	must(s.T, err)
	return strings.TrimSpace(out)
}

// Databases of several teams on one server: each has its own, nobody gets another's, and a password
// changes with its Secret.
func TestDatabasesOnASharedServer(t *testing.T) {
	s := begin(t)
	s.apply(database("foodb", "foo", "secret one",
		"roles: [{name: report, password: foodb-password}]", "connectionLimit: 20"))
	s.pgReason("foodb", "ServerNotFound")
	s.apply(bare("shared", 1))
	s.pgReason("foodb", "Ready")
	s.apply(database("bardb", "bar", "secret two"))
	s.apply(database("thief", "foo", "secret three"))
	s.pgReason("bardb", "Ready")
	s.pgReason("thief", "RoleTaken")

	s.mustAs("foo", "secret one", "foo", "CREATE TABLE t AS SELECT generate_series(1, 10) AS n")
	if n := s.mustAs("report", "secret one", "foo", "SELECT count(*) FROM t"); n != "10" {
		t.Errorf("the role report reads %s rows", n)
	}
	for _, c := range []struct{ who, password, database, sql, want string }{
		{"report", "secret one", "foo", "DELETE FROM t", "permission denied"},
		{"bar", "secret two", "foo", "SELECT 1", "permission denied for database"},
		{"foo", "secret three", "foo", "SELECT 1", "password authentication failed"},
		{"foo", "secret one", "foo", "CREATE ROLE more SUPERUSER", "permission denied"},
	} {
		if _, err := s.as(c.who, c.password, c.database, c.sql); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, want %s", c.who, c.sql, err, c.want)
		}
	}
	s.changesPassword()
	s.keepsOrDrops()
}

// changesPassword changes a Secret. The server takes the new password and not the old one, and the Secret
// for applications has it.
func (s *story) changesPassword() {
	s.Helper()
	s.run("patch", "secret", "foodb-password", "-p", `{"stringData":{"postgresql_password":"secret four"}}`)
	s.run("annotate", "pg", "foodb", "toban.dev/reload=1")
	s.until(func(context.Context) error {
		_, err := s.as("foo", "secret four", "foo", "SELECT 1")
		return err
	})
	if _, err := s.as("foo", "secret one", "foo", "SELECT 1"); err == nil {
		s.Error("the former password still works")
	}
	s.until(func(ctx context.Context) error {
		out, err := s.Kubectl(ctx, "get", "secret", "foodb-app", "-o", "jsonpath={.data.password}")
		if err != nil {
			return err
		}
		if text, _ := base64.StdEncoding.DecodeString(out); string(text) != "secret four" {
			return errors.New("the Secret foodb-app has the former password")
		}
		return nil
	})
	s.pgReason("foodb", "Ready")
}

// keepsOrDrops deletes databases with each policy.
func (s *story) keepsOrDrops() {
	s.Helper()
	s.run("delete", "pg", "foodb", "--timeout=2m")
	if n := s.mustAs("foo", "secret four", "foo", "SELECT count(*) FROM t"); n != "10" {
		s.Errorf("of a database that was to be retained %s rows are left", n)
	}
	s.apply(database("foodb", "foo", "secret five", "deletionPolicy: Delete"))
	s.pgReason("foodb", "Ready")
	// A kubelet may mount what the Secret was a moment ago; the operator sees that, and has it read again.
	s.until(func(context.Context) error {
		_, err := s.as("foo", "secret five", "foo", "SELECT 1")
		return err
	})
	if n := s.mustAs("foo", "secret five", "foo", "SELECT count(*) FROM t"); n != "10" {
		s.Errorf("the database that was retained has %s rows for its successor", n)
	}
	if _, err := s.as("report", "secret one", "foo", "SELECT 1"); err == nil {
		s.Error("a role that is not declared any more logs in")
	}
	const named = "(SELECT oid FROM pg_roles WHERE rolname = 'foo' UNION ALL SELECT oid FROM pg_database " +
		"WHERE datname = 'foo') AS o"
	dropped := s.ask("shared", "SELECT string_agg(oid::text, ',') FROM "+named)
	s.run("delete", "pg", "foodb", "--timeout=2m")
	// The thief may have made others of these names by now.
	if out := s.ask("shared", "SELECT count(*) FROM "+named+" WHERE oid IN ("+dropped+")"); out != "0" {
		s.Errorf("of a database that was to be dropped %s of role and database are left", out)
	}
	s.pgReason("thief", "Ready") // by now the names are free
	if _, err := s.as("foo", "secret three", "foo", "SELECT count(*) FROM t"); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		s.Errorf("the new database of that name has the rows of the dropped one: %v", err)
	}
}

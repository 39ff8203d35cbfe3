package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/database"
	"toban.dev/internal/postgres/scram"
	"toban.dev/test/local/single"
)

// setPassword gives a role a password, as the operator has the primary's agent do.
func (n *node) setPassword(role, password string) error {
	n.Helper()
	verifier, err := scram.Verifier(password)
	must(n, err)
	return database.SetPassword(within(n, deadline), n.ConnectTo, role, verifier)
}

// Who is in stays in, the new password lets in, and the former one does not.
func TestAPasswordIsReplacedUnderAnOpenSession(t *testing.T) {
	n := server(t)
	super, err := n.ConnectTo(within(t, deadline), "postgres")
	must(t, err)
	defer super.Close(t.Context())
	if c := sql(t, super, "CREATE ROLE app LOGIN PASSWORD 'first'", "CREATE DATABASE app OWNER app"); c != "" {
		t.Fatal(c)
	}
	open := n.mustLogin("app", "first", "app")
	must(t, database.SetPassword(within(t, deadline), n.ConnectTo, "app", "")) // only asked whether it could be
	n.mustLogin("app", "first", "app")
	must(t, n.setPassword("app", "second"))
	if c := sql(t, open, "CREATE TABLE after (id int)"); c != "" {
		t.Errorf("the open session: %s", c)
	}
	n.mustLogin("app", "second", "app")
	if _, err := n.login("app", "first", "app"); code(err) != badLogin {
		t.Errorf("the former password: %v", err)
	}
}

// A verifier is enough to try passwords without the server noticing. Who may read a log may not have one.
func TestNoVerifierIsWrittenDown(t *testing.T) {
	n := server(t)
	super, err := n.ConnectTo(within(t, deadline), "postgres")
	must(t, err)
	defer super.Close(t.Context())
	if c := sql(t, super, single.Loud, "CREATE ROLE app LOGIN"); c != "" {
		t.Fatal(c)
	}
	n.ensure(foodb())
	must(t, n.setPassword("app", "first"))
	err = database.SetPassword(within(t, deadline), func(ctx context.Context, name string) (*pgx.Conn, error) {
		conn, err := n.ConnectTo(ctx, name)
		if err == nil {
			_, err = conn.Exec(ctx, "SET default_transaction_read_only = on")
		}
		return conn, err
	}, "app", unlike(t))
	if code(err) != "25006" {
		t.Errorf("what a server refuses to do: %v", err)
	}
	log := n.log.String()
	if strings.Contains(log, single.Secret) {
		t.Error("the log has a verifier")
	}
	for _, open := range []string{"REVOKE ALL ON DATABASE", "LOCK TABLE toban.claim"} {
		if !strings.Contains(log, open) {
			t.Errorf("the log does not have %s: it is not loud", open)
		}
	}
}

// unlike is a verifier of another password.
func unlike(t *testing.T) string {
	t.Helper()
	verifier, err := scram.Verifier("another")
	must(t, err)
	return verifier
}

// What is not an application's role keeps its password.
func TestAPasswordThatMayNotBeReplaced(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	super, err := n.ConnectTo(within(t, deadline), "postgres")
	must(t, err)
	defer super.Close(t.Context())
	for role, want := range map[string]database.Reason{
		"postgres": database.RolePrivileged, "foo": database.RoleTaken, "nobody": database.RoleMissing,
	} {
		var refusal *database.Refusal
		if err := n.setPassword(role, "x"); !errors.As(err, &refusal) || refusal.Reason != want {
			t.Errorf("%s: %v, want it refused for %s", role, err, want)
		}
	}
	n.mustLogin("foo", "mypassword", "foo")
	for _, text := range []string{"plain", "md50123456789abcdef0123456789abcdef", "SCRAM-SHA-256$1:YQ==$'--"} {
		err := database.SetPassword(within(t, deadline), n.ConnectTo, "foo", text)
		var refusal *database.Refusal
		if err == nil || errors.As(err, &refusal) {
			t.Errorf("%q is taken for a verifier: %v", text, err)
		}
	}
}

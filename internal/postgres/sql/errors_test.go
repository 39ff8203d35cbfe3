package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/postgres/sql"
)

// A value of a row is shown to nobody who can't read the row.
func TestExplain(t *testing.T) {
	unique := &pgconn.PgError{
		Severity: "ERROR", Code: "23505", Message: `could not create unique index "x"`, Detail: "Key (n)=(7) is twice.",
	}
	full := &pgconn.PgError{Severity: "ERROR", Code: "53100", Message: "could not extend file",
		Hint: "Check free space."}
	for _, c := range []struct {
		err   error
		shown sql.Shown
		want  string
	}{
		{unique, sql.ShownCode, "SQLSTATE 23505"},
		{unique, sql.ShownMessage, `could not create unique index "x" (SQLSTATE 23505)`},
		{unique, sql.ShownAll,
			`ERROR: could not create unique index "x" (SQLSTATE 23505) DETAIL: Key (n)=(7) is twice.`},
		{fmt.Errorf("rebuild: %w", full), sql.ShownCode, "could not extend file (SQLSTATE 53100)"},
		{full, sql.ShownAll, "ERROR: could not extend file (SQLSTATE 53100) HINT: Check free space."},
		{errors.New("no route"), sql.ShownCode, "no route"},
	} {
		if got := sql.Explain(c.err, c.shown); got != c.want {
			t.Errorf("%v, %d: %q, want %q", c.err, c.shown, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	if got := sql.Quote(`a"b`, "c"); got != `"a""b"."c"` {
		t.Errorf("the name is %s", got)
	}
	if got := sql.Literal("it's"); got != "'it''s'" {
		t.Errorf("the text is %s", got)
	}
}

// A connection says all that libpq would take from the environment.
func TestAConnectionTakesNothingFromTheEnvironment(t *testing.T) {
	c := sql.Connection{Hosts: []string{"a", "b"}, Port: 5432, Database: "d", Role: "r"}
	expected, err := c.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"PGHOST": "elsewhere", "PGPORT": "none", "PGUSER": "x", "PGPASSWORD": "x", "PGDATABASE": "x", "PGAPPNAME": "x",
		"PGSSLMODE": "require", "PGTARGETSESSIONATTRS": "none", "PGCONNECT_TIMEOUT": "none", "PGPASSFILE": "/none",
		"PGSSLNEGOTIATION": "direct", "PGSSLROOTCERT": "/none", "PGSSLCERT": "/none", "PGSSLKEY": "/none",
		"PGSSLCERTMODE": "none", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none", "PGMINPROTOCOLVERSION": "none",
		"PGMAXPROTOCOLVERSION": "none", "PGOPTIONS": "-c x=y", "PGTZ": "x",
	} {
		t.Setenv(name, value)
	}
	config, err := c.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{config.SSLNegotiation, config.ChannelBinding, config.SSLCertMode, config.RequireAuth,
		config.MinProtocolVersion, config.MaxProtocolVersion}
	expects := []string{expected.SSLNegotiation, expected.ChannelBinding, expected.SSLCertMode, expected.RequireAuth,
		expected.MinProtocolVersion, expected.MaxProtocolVersion}
	if !slices.Equal(refused, expects) {
		t.Errorf("it has %q, without the variables %q", refused, expects)
	}
	if config.Host != "a" || config.Port != 5432 || config.User != "r" || config.Password != "" ||
		config.Database != "d" || config.TLSConfig != nil || config.ConnectTimeout != 0 ||
		config.ValidateConnect != nil || len(config.RuntimeParams) > 0 ||
		len(config.Fallbacks) != 1 || config.Fallbacks[0].Host != "b" {
		t.Errorf("it is %+v", config)
	}
}

package initjob

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Of a source that is a Secret, neither the result nor an error has a word that PostgreSQL may quote of it.
func TestAnErrorQuotesNothingOfASecret(t *testing.T) {
	quoting := &pgconn.PgError{
		Severity: "ERROR", Code: "23505", Message: "it is hunter2", Detail: "Key (b)=(hunter2).", Hint: "not hunter2",
		Position: 17, Where: "hunter2",
	}
	for name, c := range map[string]struct {
		secret  bool
		err     error
		has     string
		without string
	}{
		"a ConfigMap's error is PostgreSQL's": {false, quoting, "DETAIL: Key (b)=(hunter2).", "is not shown"},
		"a Secret's has its code and place":   {true, quoting, "(SQLSTATE 23505), at character 17 of the", "hunter2"},
		"also where more is said before it":   {true, fmt.Errorf("begin: %w", quoting), "(SQLSTATE 23505)", "hunter2"},
		"our own refusal quotes nothing":      {true, refuse("leave COMMIT out"), "leave COMMIT out", "SQLSTATE"},
	} {
		t.Run(name, func(t *testing.T) {
			err := script{secret: c.secret}.failed("Secret rows, key rows.sql, line 2", c.err)
			got := Report(fmt.Errorf("no instance took writes: %w", err))
			if got.Step != "Secret rows, key rows.sql, line 2" || !strings.Contains(got.Message, c.has) ||
				strings.Contains(got.Message, c.without) {
				t.Errorf("result is %+v", got)
			}
			if text := err.Error(); !strings.Contains(text, c.has) || strings.Contains(text, c.without) {
				t.Errorf("the error is %s", text)
			}
		})
	}
	busy := &pgconn.PgError{Code: "40001"}
	if err := (script{secret: true}).failed("x", busy); !transient(err) || !errors.Is(err, busy) {
		t.Errorf("whether it is worth trying again is not known any more: %v", err)
	}
}

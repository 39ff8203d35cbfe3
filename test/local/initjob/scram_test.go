package initjob_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"toban.dev/internal/postgres/scram"
)

// passwords that SASLprep treats in different ways.
var passwords = map[string]string{
	"ASCII":                "pencil",
	"quotes and dollars":   `a'b"c\d$e$$`,
	"spaces around":        "  pencil  ",
	"Japanese":             "当番は合言葉",
	"composed":             "caf\u00e9",
	"decomposed":           "cafe\u0301",
	"compatibility":        "\u2168\ufb01\uff76\uff9e",
	"wide space":           "合\u3000言葉",
	"zero-width space":     "合\u200b言葉",
	"soft hyphen":          "caf\u00e9\u00adx",
	"control character":    "caf\u00e9\x01e\u0301",
	"emoji":                "\U0001F600e\u0301",
	"right to left":        "\u0627\u0644\u0633\u0644\u0627\u0645",
	"mixed directions":     "\u0627a\u0628\u2168",
	"right to left, digit": "\u06271\u2168",
	"private use":          "\ue000e\u0301",
	"long":                 strings.Repeat("é", 300),
}

// The server's own verifier of a password is one that Matches takes, so both
// normalise it in the same way.
func TestVerifiersAreThoseOfTheServer(t *testing.T) {
	s := start(t)
	for name, password := range passwords {
		t.Run(name, func(t *testing.T) {
			literal := "E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'"
			s.Do(t, "postgres",
				"SET password_encryption = 'scram-sha-256'; DROP ROLE IF EXISTS a; CREATE ROLE a PASSWORD "+literal)
			stored := s.Ask(t, "postgres", "SELECT rolpassword FROM pg_authid WHERE rolname = 'a'")
			if !scram.Matches(stored, password) {
				t.Errorf("the server's verifier of %+q is not ours", password)
			}
		})
	}
}

// A client of PostgreSQL's own (libpq) logs in with the password of our verifier.
func TestOurVerifiersLogIn(t *testing.T) {
	s := start(t)
	for name, password := range passwords {
		t.Run(name, func(t *testing.T) {
			verifier, err := scram.Verifier(password)
			must(t, err)
			s.Do(t, "postgres", "DROP ROLE IF EXISTS b; CREATE ROLE b LOGIN PASSWORD '"+verifier+"'")
			if out, err := s.psql(password); err != nil {
				t.Errorf("psql with the password: %v\n%s", err, out)
			}
			if out, err := s.psql(password + "x"); err == nil {
				t.Errorf("psql with another password gets in\n%s", out)
			}
		})
	}
}

func (s *server) psql(password string) (string, error) {
	c := exec.Command(s.Programs+"/psql", "-XAtc", "SELECT 1",
		fmt.Sprintf("host=127.0.0.1 port=%d user=b dbname=postgres sslmode=require", s.Port))
	c.Env = append(os.Environ(), "PGPASSWORD="+password, "PGCLIENTENCODING=UTF8")
	out, err := c.CombinedOutput()
	return string(out), err
}

package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres/database"
)

// printable are all of ASCII that can be printed, with blanks at both ends.
func printable() string {
	var out strings.Builder
	for c := ' '; c <= '~'; c++ {
		out.WriteRune(c)
	}
	return out.String() + " "
}

// oddNames are what a database, its role and its password can be called: in a URI, in a password file, in SQL and in a
// conninfo string their characters mean something. A database's name has 63 bytes at most.
var oddNames = map[string]struct{ db, user, password string }{
	"every character that can be printed, in the password": {"app", "app", printable()},
	"one half of them in the names": {
		printable()[:48], printable()[:48], "\t\x01\x7f" + `%00%zz\:\\`,
	},
	"the other half":       {printable()[48:], printable()[48:], "当番 \U0001F600 e\u0301 ÄÖÜß\u00a0x"},
	"SQL":                  {`a"; DROP DATABASE "app`, `x'; DROP ROLE app; --`, `'; SELECT pg_sleep(99) --`},
	"conninfo":             {"dbname=postgres host=/tmp", "user=postgres password=''", "postgresql://postgres@/"},
	"a URI":                {"postgresql://postgres@localhost/postgres?x=y", "//u:p@h/d?q#f", "a&password=b#c?d=e"},
	"blanks":               {" a b ", "  ", "   "},
	"umlauts of 63 bytes":  {strings.Repeat("ä", 31) + "x", strings.Repeat("ü", 31) + "x", strings.Repeat("ö", 256)},
	"words of PostgreSQL":  {"replication", "sameuser", "all"},
	"the last of a folder": {"../..", "..", "."},
}

// What is written into the Secret NAME-app leads psql (libpq) and pgx to the database, as its owner, with its password:
// the URIs by themselves, and the password file for the rest.
func TestEveryStringOfASecretLeadsToTheDatabase(t *testing.T) {
	n := server(t)
	for name, c := range oddNames {
		t.Run(name, func(t *testing.T) {
			d := declared("shop/"+name, c.db, c.password)
			d.Owner.Name, d.Adopt = c.user, true
			_, err := database.Ensure(within(n, deadline), n.ConnectTo, d)
			must(t, err)
			pg := &pgv1.PostgreSQL{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop"},
				Spec:       pgv1.PostgreSQLSpec{DB: c.db, User: pgv1.RoleName(c.user)},
			}
			db := &v1.SampleDB{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop"}, Spec: v1.SampleDBSpec{Instances: 3},
			}
			data := desired.DatabaseSecret(pg, db, c.password, nil).Data
			for _, key := range []string{naming.KeyURI, naming.KeyReadURI, naming.KeyHostsURI} {
				// The file with the authority is in the application's Pod.
				uri := strings.Replace(string(data[key]), "sslmode=verify-full&sslrootcert="+naming.TrustFile("x"),
					"sslmode=require", 1)
				if got := n.psqlSays(uri); got != c.db+"|"+c.user {
					t.Errorf("psql by %s is in %q\n%s", key, got, uri)
				}
				if got := n.pgxSays(uri); got != c.db+"|"+c.user {
					t.Errorf("pgx by %s is in %q\n%s", key, got, uri)
				}
			}
			file := filepath.Join(t.TempDir(), "pgpass")
			must(t, os.WriteFile(file, data[naming.KeyPgpass], 0o600))
			if got := n.psqlSays("", "PGPASSFILE="+file, "PGHOST="+string(data[naming.KeyHost]), "PGUSER="+c.user,
				"PGDATABASE="+c.db, "PGSSLMODE=require"); got != c.db+"|"+c.user {
				t.Errorf("psql by the password file is in %q\n%s", got, data[naming.KeyPgpass])
			}
		})
	}
}

const whereAmI = "SELECT current_database() || '|' || current_user"

// psqlSays is where psql is that was given a string, or why it is nowhere.
func (n *node) psqlSays(uri string, env ...string) string {
	args := []string{"--no-psqlrc", "--no-password", "-Atc", whereAmI}
	if uri != "" {
		args = append(args, uri)
	}
	c := exec.CommandContext(within(n, deadline), filepath.Join(n.Programs.Dir, "psql"), args...)
	c.Env = append(append(os.Environ(), "PGHOSTADDR="+strings.TrimSuffix(strings.Repeat(n.Listen+",",
		max(1, strings.Count(uri, ":5432"))), ","), "PGCLIENTENCODING=UTF8"), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// pgxSays is the same with pgx.
func (n *node) pgxSays(uri string) string {
	config, err := pgx.ParseConfig(uri)
	if err != nil {
		return err.Error()
	}
	config.Host, config.Fallbacks = n.Listen, nil
	ctx := within(n, deadline)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err.Error()
	}
	defer conn.Close(ctx)
	var got string
	if err := conn.QueryRow(ctx, whereAmI).Scan(&got); err != nil {
		return err.Error()
	}
	return got
}

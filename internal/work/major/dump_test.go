package major

import "testing"

// The option goes, what else a statement sets stays, and no byte of a dump moves.
func TestWithoutVersions(t *testing.T) {
	const begin = "\x00\x1f" + `TABLE` + "\nCREATE TABLE x;\n"
	const column = `ALTER TABLE ONLY "public"."a ""b""" ALTER COLUMN "c" `
	for _, c := range []struct{ from, want string }{
		{column + `SET (pg_attver=28860760);`, column + `RESET (n_distinct)      ;`},
		{column + `SET (pg_attver=28860760, n_distinct=5);`, column + `SET (n_distinct=5)                    ;`},
		{column + `SET (n_distinct=5, pg_attver=28860760);`, column + `SET (n_distinct=5)                    ;`},
		{`ALTER FOREIGN TABLE ONLY "s"."t" ALTER COLUMN "two` + "\n" + `lines" SET (pg_attver=28860760);`,
			`ALTER FOREIGN TABLE ONLY "s"."t" ALTER COLUMN "two` + "\n" + `lines" RESET (n_distinct)      ;`},
		{column + `SET (n_distinct=5);`, column + `SET (n_distinct=5);`},
		{column + `SET (pg_other=28860760);`, column + `SET (pg_other=28860760);`},
		{`-- SET (pg_attver=28860760);`, `-- SET (pg_attver=28860760);`},
		{`  ` + column + `SET (pg_attver=28860760);`, `  ` + column + `SET (pg_attver=28860760);`},
	} {
		got := []byte(begin + c.from + "\n")
		found := withoutVersions(got)
		if string(got) != begin+c.want+"\n" || (found > 0) != (c.from != c.want) {
			t.Errorf("%s: %d, %q", c.from, found, got)
		}
	}
}

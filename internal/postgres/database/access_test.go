package database

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// hostile is a name of which each part would be a statement, if it were not quoted.
const hostile = `a"; DROP ROLE b; --'`

func TestTheRightsOfARole(t *testing.T) {
	d := Declared{Name: "shop", Owner: Login{Name: "app"}}
	for name, c := range map[string]struct {
		access  Access
		schemas []string
		want    []string
	}{
		"one who reads": {ReadOnly, []string{"public"}, []string{
			`GRANT CONNECT, TEMPORARY ON DATABASE "shop" TO "r"`,
			`GRANT USAGE ON SCHEMA "public" TO "r"`,
			`GRANT SELECT ON ALL TABLES IN SCHEMA "public" TO "r"`,
			`GRANT SELECT ON ALL SEQUENCES IN SCHEMA "public" TO "r"`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "app" IN SCHEMA "public" GRANT SELECT ON TABLES TO "r"`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "app" IN SCHEMA "public" GRANT SELECT ON SEQUENCES TO "r"`,
		}},
		"one who writes": {ReadWrite, []string{"s"}, []string{
			`GRANT CONNECT, TEMPORARY ON DATABASE "shop" TO "r"`,
			`GRANT USAGE ON SCHEMA "s" TO "r"`,
			`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "s" TO "r"`,
			`GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA "s" TO "r"`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "app" IN SCHEMA "s" ` +
				`GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO "r"`,
			`ALTER DEFAULT PRIVILEGES FOR ROLE "app" IN SCHEMA "s" GRANT SELECT, USAGE, UPDATE ON SEQUENCES TO "r"`,
		}},
		"one who is as the owner": {Owner, []string{"s"}, []string{
			`GRANT CONNECT, TEMPORARY ON DATABASE "shop" TO "r"`,
			`GRANT "app" TO "r"`,
			`ALTER ROLE "r" IN DATABASE "shop" SET role = 'app'`,
		}},
		"no schema is there": {ReadWrite, nil, []string{`GRANT CONNECT, TEMPORARY ON DATABASE "shop" TO "r"`}},
	} {
		got := grants(d, Role{Login: Login{Name: "r"}, Access: c.access}, c.schemas)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Nobody's name is a part of a statement other than as a name: without names in quotes, nothing of it is left.
func TestNamesAreNoSQL(t *testing.T) {
	d := Declared{Name: hostile, Owner: Login{Name: hostile}}
	all := strip(hostile, hostile, hostile)
	for _, access := range []Access{ReadOnly, ReadWrite, Owner} {
		all = append(all, grants(d, Role{Login: Login{Name: hostile}, Access: access}, []string{hostile})...)
	}
	for _, statement := range all {
		rest := strings.NewReplacer(`"a""; DROP ROLE b; --'"`, "", `'a"; DROP ROLE b; --'''`, "").Replace(statement)
		if strings.ContainsAny(rest, `"';`) || strings.Contains(rest, "DROP ROLE") {
			t.Errorf("a name gets out of %s", statement)
		}
	}
	if len(all) != 4+6+6+3 {
		t.Errorf("there are %d statements", len(all))
	}
}

// What a role had is taken from it in this order: what it owns is the owner's before its rights are dropped, or else
// its tables would be dropped with them.
func TestARoleIsStrippedWithoutLossOfData(t *testing.T) {
	got := strip("r", "app", "shop")
	reassign := slices.Index(got, `REASSIGN OWNED BY "r" TO "app"`)
	drop := slices.Index(got, `DROP OWNED BY "r"`)
	if reassign < 0 || drop < reassign {
		t.Errorf("the statements are %q", got)
	}
}

func TestWhatPostgreSQLWillAlwaysRefuse(t *testing.T) {
	for code, final := range map[string]bool{
		"42501": true,  // no permission
		"0A000": true,  // not supported
		"22023": true,  // an invalid value
		"2BP01": true,  // something depends on it
		"58P01": true,  // an extension without its file
		"53300": false, // too many clients
		"57P01": false, // the server stops
		"40001": false, // a conflict that passes
		"25006": false, // a standby now
	} {
		err := refused(&pgconn.PgError{Code: code, Message: "no", Hint: "Ask."}, "make it")
		var refusal *Refusal
		is := errors.As(err, &refusal)
		switch {
		case is != final:
			t.Errorf("%s: it is a refusal: %v, want %v", code, is, final)
		case is && (refusal.Reason != ServerRefused || refusal.Message != "PostgreSQL refuses to make it: no Ask."):
			t.Errorf("%s: %s: %s", code, refusal.Reason, refusal)
		case !is && err.Error()[:7] != "make it":
			t.Errorf("%s does not say what was being done: %v", code, err)
		}
	}
	if err := refused(errors.New("the connection broke"), "make it"); errors.As(err, new(*Refusal)) {
		t.Errorf("a broken connection is a refusal: %v", err)
	}
}

package psql

import (
	"slices"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestTheCommandOfPsql(t *testing.T) {
	db := &v1.SampleDB{Spec: v1.SampleDBSpec{Init: &v1.InitSpec{Database: "shop", Owner: "the owner"}}}
	none := &v1.SampleDB{Spec: v1.SampleDBSpec{Init: &v1.InitSpec{None: true}}}
	for name, c := range map[string]struct {
		options psqlOptions
		db      *v1.SampleDB
		args    []string
		want    string
	}{
		"the superuser": {psqlOptions{}, db, nil, "postgres|psql|--dbname|shop"},
		"the application": {
			psqlOptions{app: true}, db, []string{"-c", "SELECT 1"}, `the owner|psql|--dbname|shop|-c|SELECT 1`,
		},
		"another role and database": {
			psqlOptions{user: "reader", database: "other"}, db, nil, "reader|psql|--dbname|other",
		},
		"a SampleDB without an application": {psqlOptions{}, none, nil, "postgres|psql|--dbname|postgres"},
	} {
		got := strings.Join(c.options.command(c.db, c.args, false), "|")
		role, rest, _ := strings.Cut(c.want, "|")
		want := "env|PSQL_HISTORY=/dev/null|PGAPPNAME=kubectl toban psql|" + PSQLOptions(role) + "|" + rest
		if got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
	t.Setenv("TERM", "screen")
	if got := (&psqlOptions{}).command(db, nil, true); !slices.Contains(got, "TERM=screen") {
		t.Errorf("in a terminal it is %q", got)
	}
}

// A person's session begins as ours do: nothing that an owner of the database has set counts.
func TestWhatAPersonsSessionBeginsWith(t *testing.T) {
	for role, want := range map[string]string{
		naming.RoleSuperuser: "-c search_path=pg_catalog -c standard_conforming_strings=on",
		"the owner":          `-c search_path="$user",\ public -c standard_conforming_strings=on`,
	} {
		got := PSQLOptions(role)
		last := "-c role=none"
		if role != naming.RoleSuperuser {
			last = `-c role=the\ owner`
		}
		if !strings.HasPrefix(got, "PGOPTIONS=-c session_authorization=postgres ") || !strings.Contains(got, want) ||
			!strings.HasSuffix(got, last) {
			t.Errorf("%s begins with %s", role, got)
		}
		if strings.Contains(got, "default_transaction_read_only") {
			t.Errorf("%s writes on a volume that is getting full: %s", role, got)
		}
	}
}

func TestPsqlTakesOneNameAndArgumentsAfterDashes(t *testing.T) {
	for line, fine := range map[string]bool{
		"shop": true, "shop -- -c x": true, "shop --app -- -c x y": true, "shop -- -n": true,
		"": false, "shop other": false, "-- -c x": false, "shop --app --user x": false,
		"shop --replica --instance x": false,
	} {
		c := PSQL()
		err := c.ParseFlags(strings.Fields(line))
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err == nil {
			err = c.ValidateFlagGroups()
		}
		if (err == nil) != fine {
			t.Errorf("%q: %v", line, err)
		}
	}
}

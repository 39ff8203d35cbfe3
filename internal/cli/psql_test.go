package cli

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestThePodThatPsqlRunsIn(t *testing.T) {
	pod := func(name, role string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{naming.LabelRole: role}}}
	}
	ending := pod("x-0", "primary")
	ending.DeletionTimestamp = &metav1.Time{}
	all := []corev1.Pod{pod("x-0", "standby"), pod("x-1", "primary"), pod("x-2", "")}
	for name, c := range map[string]struct {
		choice     instanceChoice
		pods       []corev1.Pod
		want, says string
	}{
		"the primary":                 {instanceChoice{}, all, "x-1", ""},
		"a standby":                   {instanceChoice{replica: true}, all, "x-0", ""},
		"a named one without role":    {instanceChoice{name: "x-2"}, all, "x-2", ""},
		"one that is not there":       {instanceChoice{name: "x-3"}, all, "", "x-0, x-1, x-2"},
		"nobody leads":                {instanceChoice{}, all[:1], "", "no primary"},
		"there is no standby":         {instanceChoice{replica: true}, all[1:], "", "no standby"},
		"the primary's Pod is ending": {instanceChoice{}, []corev1.Pod{ending}, "", "no primary"},
	} {
		got, err := c.choice.pick("x", c.pods)
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

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

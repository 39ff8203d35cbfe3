package cluster

import (
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/postgres/sql"
)

// An owner of a database can set parameters for all who connect to it.
func TestAServerIsAskedWithOurSettings(t *testing.T) {
	options := func(major int) string {
		command := Question{"kubectl toban top", "app", "SELECT 1"}.command(major)
		return command[slices.IndexFunc(command, func(s string) bool { return strings.HasPrefix(s, "PGOPTIONS=") })]
	}
	const noTriggers = "-c event_triggers=off" // no event trigger at login is in the way
	for _, want := range []string{
		"-c search_path=pg_catalog", "-c session_authorization=postgres", `-c datestyle=ISO,\ MDY`,
		"-c statement_timeout=10s", "-c default_transaction_read_only=on", noTriggers,
	} {
		if !strings.Contains(options(sql.Newest), want) {
			t.Errorf("%q is not in %s", want, options(sql.Newest))
		}
	}
	if strings.Contains(options(0), noTriggers) {
		t.Error("a server that does not know event_triggers would refuse the session")
	}
}

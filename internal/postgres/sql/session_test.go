package sql_test

import (
	"strings"
	"testing"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/sql"
)

// The roles that are no clients are ours by the names that they have elsewhere.
func TestClientsKnowsOurRoles(t *testing.T) {
	for _, role := range []string{
		naming.RoleSuperuser, naming.RoleReplication, naming.RoleBackup, naming.RoleLink, "toban_metrics",
	} {
		if !strings.Contains(sql.Clients, "'"+role+"'") {
			t.Errorf("%s is not in %s", role, sql.Clients)
		}
	}
}

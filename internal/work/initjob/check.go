package initjob

import (
	"strings"
	"unicode"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/sql"
)

// checkPlan refuses what PostgreSQL would take in another sense than the user's.
func checkPlan(plan Plan, password string) error {
	if len(plan.Hosts) == 0 {
		return at("plan", refuse("no host is given to find the primary by"))
	}
	names := []struct{ step, field, name string }{
		{"database", "spec.init.database", plan.Database},
		{"role", "spec.init.owner", plan.Owner},
	}
	for _, e := range plan.Extensions {
		names = append(names, struct{ step, field, name string }{"extension", "spec.init.extensions", e})
	}
	for _, n := range names {
		if err := checkName(n.field, n.name); err != nil {
			return at(n.step+" "+n.name, err)
		}
	}
	switch plan.Owner {
	case naming.RoleSuperuser, naming.RoleReplication, naming.RoleBackup, naming.RoleLink:
		return at("role "+plan.Owner,
			refuse("spec.init.owner %q is a role of the operator: choose another name", plan.Owner))
	}
	if password == "" {
		return at("role "+plan.Owner, refuse("the password in the Secret is empty"))
	}
	return nil
}

func checkName(field, name string) error {
	switch {
	case name == "":
		return refuse("%s is empty", field)
	case len(name) > sql.MaxName:
		return refuse("%s %q is %d bytes long in UTF-8: PostgreSQL allows %d", field, name, len(name), sql.MaxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		// PostgreSQL takes some of them; but with a line break pg_dumpall and pg_upgrade refuse the name, PostgreSQL 19
		// too, and a password file would have two lines of it.
		return refuse("%s %q has a control character in it: choose another name", field, name)
	}
	return nil
}

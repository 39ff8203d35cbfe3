package database

import (
	"testing"
)

// declared is what the PostgreSQL n/foo wants of a server that others use too.
func declared(edit func(*Declared)) Declared {
	password := "secret"
	d := Declared{
		Claimant: "n/foo", Name: "shop", Owner: Login{Name: "app", Password: &password, ConnectionLimit: -1},
		ConnectionLimit: -1,
		Roles:           []Role{{Login: Login{Name: "reader", ConnectionLimit: -1}, Access: ReadOnly}},
	}
	if edit != nil {
		edit(&d)
	}
	return d
}

// ours is what is there after declared was made.
func ours(edit func(*found)) found {
	claimed := claim{claimant: "n/foo", made: true}
	f := found{
		database: databaseFound{claim: claimed, exists: true, owner: "app", limit: -1},
		roles: map[string]roleFound{
			"app":    {claim: claimed, exists: true, login: true},
			"reader": {claim: claimed, exists: true, login: true},
		},
	}
	if edit != nil {
		edit(&f)
	}
	return f
}

func TestWhatIsDeclaredCanBeOrNot(t *testing.T) {
	noPassword := func(d *Declared) { d.Owner.Password = nil }
	adopt := func(d *Declared) { d.Adopt = true }
	exclusive := func(d *Declared) { d.Exclusive, d.Adopt = true, true }
	role := func(name string, r roleFound) func(*found) { return func(f *found) { f.roles[name] = r } }
	database := func(d databaseFound) func(*found) { return func(f *found) { f.database = d } }
	nothing := func(f *found) { *f = found{} }
	others, nobodys := claim{claimant: "n/bar", made: true}, claim{}
	for name, c := range map[string]struct {
		want  func(*Declared)
		there func(*found)
		is    Reason
	}{
		"all is as it was made":                        {nil, nil, ""},
		"nothing is there":                             {nil, nothing, ""},
		"nothing is there, and no password":            {noPassword, nothing, NoPassword},
		"no password for an owner that is there":       {noPassword, nil, ""},
		"no password for another role that is missing": {nil, role("reader", roleFound{}), ""},
		"the owner is a superuser": {nil, role("app", roleFound{claim: claim{claimant: "n/foo"}, exists: true,
			privileged: true}), RolePrivileged},
		"the owner is a superuser of a server of its own": {exclusive, role("app", roleFound{exists: true,
			privileged: true}), RolePrivileged},
		"another role is a superuser": {adopt, role("reader", roleFound{exists: true, privileged: true}),
			RolePrivileged},
		"the owner is another's":          {adopt, role("app", roleFound{claim: others, exists: true}), RoleTaken},
		"another role is another's":       {adopt, role("reader", roleFound{claim: others, exists: true}), RoleTaken},
		"a role is claimed, and not made": {nil, role("reader", roleFound{claim: others}), RoleTaken},
		"the owner is nobody's":           {nil, role("app", roleFound{claim: nobodys, exists: true}), RoleExists},
		"the owner is nobody's, and is to be adopted": {adopt,
			role("app", roleFound{claim: nobodys, exists: true}), ""},
		"the owner is nobody's, and a member of a superuser": {adopt,
			role("app", roleFound{exists: true, member: "postgres"}), RolePrivileged},
		"the owner was made a member of a role with rights": {nil,
			role("app", roleFound{claim: claim{claimant: "n/foo"}, exists: true, member: "pg_monitor"}), ""},
		"on a server of its own the owner is a member of a role with rights": {exclusive,
			role("app", roleFound{exists: true, member: "pg_monitor"}), ""},
		"the database is another's": {adopt, database(databaseFound{claim: others, exists: true, owner: "app"}),
			DatabaseTaken},
		"the database is claimed by another, and not made": {adopt, database(databaseFound{claim: others}),
			DatabaseTaken},
		"the database is nobody's": {nil, database(databaseFound{claim: nobodys, exists: true, owner: "app"}),
			DatabaseExists},
		"the database is nobody's, and is to be adopted": {adopt,
			database(databaseFound{claim: nobodys, exists: true, owner: "app"}), ""},
		"another role owns the database": {nil, func(f *found) { f.database.owner = "somebody" }, DatabaseForeign},
		"another role owns the database that is to be adopted": {adopt,
			database(databaseFound{claim: nobodys, exists: true, owner: "somebody"}), DatabaseForeign},
		"on a server of its own what is there is taken": {exclusive, func(f *found) {
			f.database.claim = others
			f.roles["app"] = roleFound{claim: others, exists: true}
			f.roles["reader"] = roleFound{exists: true}
		}, ""},
		"on a server of its own another role owns the database": {exclusive,
			func(f *found) { f.database.owner = "postgres" }, DatabaseForeign},
	} {
		t.Run(name, func(t *testing.T) {
			refusal := check(declared(c.want), ours(c.there))
			switch {
			case refusal == nil && c.is != "":
				t.Errorf("it is not refused, want %s", c.is)
			case refusal != nil && (refusal.Reason != c.is || refusal.Error() == ""):
				t.Errorf("it is refused as %s: %s; want %q", refusal.Reason, refusal, c.is)
			}
		})
	}
}

func TestWhoMayGetAnotherPassword(t *testing.T) {
	for name, c := range map[string]struct {
		there roleFound
		want  Reason
	}{
		"an application's":     {roleFound{exists: true, login: true}, ""},
		"none":                 {roleFound{}, RoleMissing},
		"none, but a claim":    {roleFound{claim: claim{claimant: "n/foo"}}, RoleMissing},
		"a superuser":          {roleFound{exists: true, privileged: true}, RolePrivileged},
		"that of a PostgreSQL": {roleFound{exists: true, claim: claim{claimant: "n/foo"}}, RoleTaken},
		"a superuser with a claim": {roleFound{exists: true, privileged: true, claim: claim{claimant: "x"}},
			RolePrivileged},
		"one that may not log in":    {roleFound{exists: true}, ""},
		"one with a limit of logins": {roleFound{exists: true, login: true, limit: 3}, ""},
	} {
		var got Reason
		if refusal := checkPassword("app", c.there); refusal != nil {
			got = refusal.Reason
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

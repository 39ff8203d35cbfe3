package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// found is what is there of what is declared.
type found struct {
	database databaseFound
	roles    map[string]roleFound
}

type databaseFound struct {
	claim
	exists bool
	owner  string
	limit  int32
	// open says that everybody may connect to it.
	open bool
}

type roleFound struct {
	claim
	exists, privileged, login bool
	// member is a role with more rights than an application's that it is a member of, "" for none.
	member   string
	verifier string
	limit    int32
}

func (w *work) observe(ctx context.Context) (found, error) {
	there := found{roles: map[string]roleFound{}}
	logins := []Login{w.Owner}
	for _, role := range w.Roles {
		logins = append(logins, role.Login)
	}
	for _, login := range logins {
		role, err := w.findRole(ctx, login.Name)
		if err != nil {
			return found{}, err
		}
		there.roles[login.Name] = role
	}
	var err error
	there.database, err = w.findDatabase(ctx)
	return there, err
}

func (w *work) findRole(ctx context.Context, name string) (roleFound, error) {
	var r roleFound
	err := w.super.QueryRow(ctx, `
		SELECT rolsuper OR rolreplication OR rolcreaterole OR rolcreatedb OR rolbypassrls,
			rolcanlogin, coalesce(rolpassword, ''), rolconnlimit, coalesce((
				SELECT p.rolname FROM pg_roles p
				WHERE p.oid <> a.oid AND pg_has_role(a.oid, p.oid, 'MEMBER') AND p.rolname <> 'pg_database_owner' AND (
					p.rolsuper OR p.rolreplication OR p.rolcreaterole OR p.rolcreatedb OR p.rolbypassrls
					OR starts_with(p.rolname, 'pg_'))
				ORDER BY p.rolsuper DESC, p.rolname LIMIT 1), '')
		FROM pg_authid a WHERE rolname = $1`, name).Scan(&r.privileged, &r.login, &r.verifier, &r.limit, &r.member)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("look for the role %q: %w", name, err)
	}
	r.exists = err == nil
	r.claim, err = w.claimOf(ctx, kindRole, name)
	return r, err
}

func (w *work) findDatabase(ctx context.Context) (databaseFound, error) {
	var d databaseFound
	err := w.super.QueryRow(ctx, `
		SELECT pg_get_userbyid(datdba), datconnlimit, EXISTS (
			SELECT FROM aclexplode(coalesce(datacl, acldefault('d', datdba))) WHERE grantee = 0)
		FROM pg_database WHERE datname = $1`, w.Name).Scan(&d.owner, &d.limit, &d.open)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return d, fmt.Errorf("look for the database %q: %w", w.Name, err)
	}
	d.exists = err == nil
	d.claim, err = w.claimOf(ctx, kindDatabase, w.Name)
	return d, err
}

func checkNames(d Declared) *Refusal {
	names := []string{d.Name, d.Owner.Name}
	for _, role := range d.Roles {
		names = append(names, role.Name)
	}
	for _, name := range names {
		if len(name) > sql.MaxName {
			return refuse(ServerRefused, "the name %q has %d bytes in UTF-8, and PostgreSQL keeps %d of a name: "+
				"choose a shorter one", name, len(name), sql.MaxName)
		}
	}
	return nil
}

// check says why what is declared can't be, nil where it can. It is pure.
func check(d Declared, there found) *Refusal {
	if refusal := checkNames(d); refusal != nil {
		return refusal
	}
	if owner := there.roles[d.Owner.Name]; !owner.exists && d.Owner.Password == nil {
		return refuse(NoPassword, "the role %q has to be made and its password is not known", d.Owner.Name)
	}
	if refusal := checkRole(d, d.Owner, there.roles[d.Owner.Name]); refusal != nil {
		return refusal
	}
	if refusal := checkDatabase(d, there.database); refusal != nil {
		return refusal
	}
	for _, role := range d.Roles {
		if refusal := checkRole(d, role.Login, there.roles[role.Name]); refusal != nil {
			return refusal
		}
	}
	return nil
}

func checkDatabase(d Declared, there databaseFound) *Refusal {
	switch {
	case d.Exclusive && (!there.exists || there.owner == d.Owner.Name), !there.exists && there.claimant == "":
		return nil
	case !d.Exclusive && there.claimant != "" && there.claimant != d.Claimant:
		return refuse(DatabaseTaken, "the database %q is that of the PostgreSQL %s: choose another spec.db",
			d.Name, there.claimant)
	case there.exists && there.owner != d.Owner.Name:
		return refuse(DatabaseForeign, "the database %q is there already and belongs to the role %q, not to %q: "+
			"choose another spec.db, or let its owner be changed with ALTER DATABASE … OWNER TO", d.Name,
			there.owner, d.Owner.Name)
	case there.exists && there.claimant == "" && !d.Adopt:
		return refuse(DatabaseExists, "the database %q is there already, and no PostgreSQL has made it: "+
			"choose another spec.db, or take it over with spec.adopt: true", d.Name)
	}
	return nil
}

func checkRole(d Declared, login Login, there roleFound) *Refusal {
	switch {
	case there.exists && there.privileged:
		return refuse(RolePrivileged, "the role %q is there already and has more rights than an application's "+
			"(superuser, replication, row security or creating roles or databases): choose another name", login.Name)
	case !d.Exclusive && there.claimant != "" && there.claimant != d.Claimant:
		return refuse(RoleTaken, "the role %q is that of the PostgreSQL %s: choose another name",
			login.Name, there.claimant)
	case !d.Exclusive && there.exists && there.claimant == "" && there.member != "":
		// What somebody grants to a role that a PostgreSQL has already is meant so.
		return refuse(RolePrivileged, "the role %q is there already and is a member of %q, so that it has more rights "+
			"than an application's: choose another name, or take that from it with REVOKE", login.Name, there.member)
	case !d.Exclusive && there.exists && there.claimant == "" && !d.Adopt:
		return refuse(RoleExists, "the role %q is there already, and no PostgreSQL has made it: choose another name, "+
			"or take it over with spec.adopt: true", login.Name)
	}
	return nil
}

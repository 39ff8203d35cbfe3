package initjob

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/postgres/sql"
)

// found is what is there of the plan's role and database.
type found struct {
	role struct {
		exists, privileged, login bool
		verifier                  string
	}
	database struct {
		exists bool
		owner  string
	}
}

// makeRoleAndDatabase makes both, or neither when one of the names belongs to
// something else.
func (j *Job) makeRoleAndDatabase(ctx context.Context, super *pgx.Conn) error {
	there, err := observe(ctx, super, j.Plan)
	if err != nil {
		return err
	}
	if there.role.privileged {
		return at("role "+j.Plan.Owner, refuse("the role %q exists already and has more rights than an application's "+
			"(superuser, replication, or creating roles): choose another spec.init.owner", j.Plan.Owner))
	}
	if there.database.exists && there.database.owner != j.Plan.Owner {
		return at("database "+j.Plan.Database, refuse("the database %q exists already and belongs to the role %q, "+
			"not to %q: choose another spec.init.database, or set spec.init.owner to %q",
			j.Plan.Database, there.database.owner, j.Plan.Owner, there.database.owner))
	}
	if err := ensureRole(ctx, super, j.Plan.Owner, j.Password, there); err != nil {
		return at("role "+j.Plan.Owner, err)
	}
	j.passed("role")
	if err := ensureDatabase(ctx, super, j.Plan, there); err != nil {
		return at("database "+j.Plan.Database, err)
	}
	j.passed("database")
	return nil
}

func observe(ctx context.Context, super *pgx.Conn, plan Plan) (found, error) {
	var there found
	r := &there.role
	err := super.QueryRow(ctx, `
		SELECT rolsuper OR rolreplication OR rolcreaterole OR rolbypassrls, rolcanlogin, coalesce(rolpassword, '')
		FROM pg_authid WHERE rolname = $1`, plan.Owner).Scan(&r.privileged, &r.login, &r.verifier)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return there, at("role "+plan.Owner, fmt.Errorf("look for it: %w", err))
	}
	r.exists = err == nil
	err = super.QueryRow(ctx, `
		SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = $1`, plan.Database).Scan(&there.database.owner)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return there, at("database "+plan.Database, fmt.Errorf("look for it: %w", err))
	}
	there.database.exists = err == nil
	return there, nil
}

// ensureRole makes a role that may log in with the password and nothing more.
// One that is there gets the password, which is a new one where the SampleDB is
// new and its volumes were kept.
func ensureRole(ctx context.Context, super *pgx.Conn, name, password string, there found) error {
	if there.role.exists && there.role.login && scram.Matches(there.role.verifier, password) {
		return nil
	}
	verb := "CREATE"
	if there.role.exists {
		verb = "ALTER"
	}
	literal, err := scram.Literal(password)
	if err != nil {
		return err
	}
	statement := fmt.Sprintf("%s ROLE %s LOGIN PASSWORD %s", verb, sql.Quote(name), literal)
	return sql.Secretly(ctx, super, func() error {
		_, err := super.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

// ensureDatabase makes a database of template0, which has nothing in it that
// someone put into template1. In it the owner owns the schema public
// too, as pg_database_owner does since PostgreSQL 15.
func ensureDatabase(ctx context.Context, super *pgx.Conn, plan Plan, there found) error {
	if there.database.exists {
		return nil
	}
	statement := fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0 ENCODING 'UTF8'",
		sql.Quote(plan.Database), sql.Quote(plan.Owner))
	if _, err := super.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	return nil
}

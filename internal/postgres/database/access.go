package database

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// ensureAccess gives a role the rights that are declared, and takes all others in this database from it. It does so
// anew when the declaration has changed, or when a schema has come or gone that it names.
func (w *work) ensureAccess(ctx context.Context, conn *pgx.Conn, role Role) error {
	schemas, err := existing(ctx, conn, role.Schemas)
	if err != nil {
		return err
	}
	wanted := strings.Join(append([]string{string(role.Access), w.Owner.Name}, schemas...), "\n")
	record, err := w.claimOf(ctx, kindRole, role.Name)
	if err != nil || record.granted == wanted {
		return err
	}
	statements := append(strip(role.Name, w.Owner.Name, w.Name), grants(w.Declared, role, schemas)...)
	if err := inTransaction(ctx, conn, statements); err != nil {
		return refused(err, fmt.Sprintf("grant %s to the role %q", role.Access, role.Name))
	}
	w.did("role %q has the access %s", role.Name, role.Access)
	return w.recordGrant(ctx, role.Name, wanted)
}

// existing are those of the schemas that are there.
func existing(ctx context.Context, conn *pgx.Conn, schemas []string) ([]string, error) {
	return sql.Column[string](ctx, conn, "look for the schemas",
		"SELECT nspname::text FROM pg_namespace WHERE nspname = ANY ($1) ORDER BY 1", schemas)
}

// strip takes every right in a database from a role, and gives what it owns there to the owner. DROP OWNED then finds
// rights only (PostgreSQL 17 documentation, DROP OWNED), the default ones among them.
func strip(role, owner, database string) []string {
	r := sql.Quote(role)
	return []string{
		fmt.Sprintf("REASSIGN OWNED BY %s TO %s", r, sql.Quote(owner)),
		fmt.Sprintf("DROP OWNED BY %s", r),
		fmt.Sprintf("REVOKE %s FROM %s", sql.Quote(owner), r),
		fmt.Sprintf("ALTER ROLE %s IN DATABASE %s RESET ALL", r, sql.Quote(database)),
	}
}

// grants are the statements that give a role its rights.
func grants(d Declared, role Role, schemas []string) []string {
	r, owner, database := sql.Quote(role.Name), sql.Quote(d.Owner.Name), sql.Quote(d.Name)
	out := []string{fmt.Sprintf("GRANT CONNECT, TEMPORARY ON DATABASE %s TO %s", database, r)}
	if role.Access == Owner {
		// What it makes is the owner's, as if the owner had made it.
		return append(out, fmt.Sprintf("GRANT %s TO %s", owner, r),
			fmt.Sprintf("ALTER ROLE %s IN DATABASE %s SET role = %s", r, database, sql.Literal(d.Owner.Name)))
	}
	tables, sequences := "SELECT", "SELECT"
	if role.Access == ReadWrite {
		tables, sequences = "SELECT, INSERT, UPDATE, DELETE", "SELECT, USAGE, UPDATE"
	}
	for _, name := range schemas {
		schema := sql.Quote(name)
		out = append(out,
			fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", schema, r),
			fmt.Sprintf("GRANT %s ON ALL TABLES IN SCHEMA %s TO %s", tables, schema, r),
			fmt.Sprintf("GRANT %s ON ALL SEQUENCES IN SCHEMA %s TO %s", sequences, schema, r),
			fmt.Sprintf("ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s GRANT %s ON TABLES TO %s",
				owner, schema, tables, r),
			fmt.Sprintf("ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %s GRANT %s ON SEQUENCES TO %s",
				owner, schema, sequences, r),
		)
	}
	return out
}

// former are the roles that the claimant had and does not declare any more.
func (w *work) former(ctx context.Context) ([]string, error) {
	claimed, err := w.claimed(ctx)
	if err != nil {
		return nil, err
	}
	declared := func(name string) bool {
		return name == w.Owner.Name || slices.ContainsFunc(w.Roles, func(r Role) bool { return r.Name == name })
	}
	return slices.DeleteFunc(claimed, declared), nil
}

// shutOut takes its login from a role and ends its sessions. It works from the database postgres, where those
// who use the role have no say. The sessions end first too: an open transaction of one that changes its own
// role would be waited for.
func (w *work) shutOut(ctx context.Context, name string) error {
	role, err := w.findRole(ctx, name)
	if err != nil || !role.exists {
		return err
	}
	end := func() error {
		_, err := w.super.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1", name)
		return err
	}
	if err := end(); err != nil {
		return fmt.Errorf("end the sessions of the role %q: %w", name, err)
	}
	if _, err := w.super.Exec(ctx, "ALTER ROLE "+sql.Quote(name)+" NOLOGIN PASSWORD NULL",
		pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("take its login from the role %q: %w", name, err)
	}
	if err := end(); err != nil {
		return fmt.Errorf("end the sessions of the role %q: %w", name, err)
	}
	return nil
}

// removeRole takes a role's rights, and drops it. Where something elsewhere depends on it, it stays
// without them, which is said.
func (w *work) removeRole(ctx context.Context, conn *pgx.Conn, name string) error {
	role, err := w.findRole(ctx, name)
	if err != nil {
		return err
	}
	if role.exists {
		if err := inTransaction(ctx, conn, strip(name, w.Owner.Name, w.Name)); err != nil {
			return refused(err, fmt.Sprintf("take the rights from the role %q", name))
		}
		if err := w.dropRole(ctx, name); err != nil {
			return err
		}
	}
	return w.release(ctx, kindRole, name)
}

// dropRole drops a role, or says that it stays.
func (w *work) dropRole(ctx context.Context, name string) error {
	_, err := w.super.Exec(ctx, "DROP ROLE IF EXISTS "+sql.Quote(name), pgx.QueryExecModeSimpleProtocol)
	if sql.Code(err) == "2BP01" { // dependent_objects_still_exist
		w.did("role %q stays without a login: %s", name, sql.Error(err).Detail)
		return nil
	}
	if err != nil {
		return fmt.Errorf("drop the role %q: %w", name, err)
	}
	w.did("role %q dropped", name)
	return nil
}

// drop removes everything of the claimant's.
func (w *work) drop(ctx context.Context) error {
	if there, err := w.haveClaims(ctx); err != nil || !there {
		return err // nothing was ever made
	}
	return w.alone(ctx, w.dropAll)
}

func (w *work) dropAll(ctx context.Context) error {
	roles, err := w.claimed(ctx)
	if err != nil {
		return err
	}
	for _, name := range roles {
		if err := w.shutOut(ctx, name); err != nil {
			return err
		}
	}
	database, err := w.findDatabase(ctx)
	if err != nil {
		return err
	}
	if database.claimant == w.Claimant {
		if _, err := w.super.Exec(ctx, "DROP DATABASE IF EXISTS "+sql.Quote(w.Name)+" WITH (FORCE)",
			pgx.QueryExecModeSimpleProtocol); err != nil {
			return refused(err, fmt.Sprintf("drop the database %q", w.Name))
		}
		w.did("database %q dropped", w.Name)
		if err := w.release(ctx, kindDatabase, w.Name); err != nil {
			return err
		}
	}
	for _, name := range roles {
		if err := w.dropOurs(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) dropOurs(ctx context.Context, name string) error {
	role, err := w.findRole(ctx, name)
	if err != nil {
		return err
	}
	if role.exists {
		if err := w.dropRole(ctx, name); err != nil {
			return err
		}
	}
	return w.release(ctx, kindRole, name)
}

// inTransaction runs statements, all or none.
func inTransaction(ctx context.Context, conn *pgx.Conn, statements []string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
}

// refused tells what PostgreSQL will always refuse from what it could not do now: by the classes of SQLSTATE
// (PostgreSQL 17 documentation, appendix A) that speak of the statement and not of the server's state.
func refused(err error, doing string) error {
	// Not supported, bad data, dependent objects, access or syntax, no such file.
	if own := sql.Error(err); own != nil && sql.InClass(own.Code, "0A", "22", "2B", "42", "58") {
		return refuse(ServerRefused, "PostgreSQL refuses to %s: %s",
			doing, strings.TrimSpace(own.Message+" "+own.Hint))
	}
	return fmt.Errorf("%s: %w", doing, err)
}

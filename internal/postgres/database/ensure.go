package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/scram"
	"toban.dev/internal/postgres/sql"
)

// ensureLogin makes a role that may log in with its password, and nothing more.
func (w *work) ensureLogin(ctx context.Context, login Login, there roleFound) error {
	if there.claimant != w.Claimant {
		if err := w.claim(ctx, kindRole, login.Name, !there.exists); err != nil {
			return err
		}
	}
	renew := login.Password != nil && !scram.Matches(there.verifier, *login.Password)
	if there.exists && there.login && !renew && there.limit == login.ConnectionLimit {
		return nil
	}
	statement := fmt.Sprintf("CREATE ROLE %s LOGIN CONNECTION LIMIT %d", sql.Quote(login.Name), login.ConnectionLimit)
	if there.exists {
		statement = fmt.Sprintf("ALTER ROLE %s LOGIN CONNECTION LIMIT %d", sql.Quote(login.Name), login.ConnectionLimit)
	}
	if renew {
		literal, err := scram.Literal(*login.Password)
		if err != nil {
			return err
		}
		statement += " PASSWORD " + literal
	}
	if err := w.secretly(ctx, fmt.Sprintf("make the role %q", login.Name), statement); err != nil {
		return err
	}
	switch {
	case !there.exists:
		w.did("role %q made", login.Name)
	case renew:
		w.did("password of %q changed", login.Name)
	default:
		w.did("role %q changed", login.Name)
	}
	return nil
}

// ensureDatabase makes a database of template0, which has nothing in it that someone put into template1. One that we
// made lets in nobody but its own roles; by itself PostgreSQL lets every role connect.
func (w *work) ensureDatabase(ctx context.Context, there databaseFound) error {
	if there.claimant != w.Claimant {
		if err := w.claim(ctx, kindDatabase, w.Name, !there.exists); err != nil {
			return err
		}
		there.made = there.made || !there.exists
	}
	name := sql.Quote(w.Name)
	if !there.exists {
		statement := fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE template0 ENCODING 'UTF8' CONNECTION LIMIT %d",
			name, sql.Quote(w.Owner.Name), w.ConnectionLimit)
		if _, err := w.super.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("make the database %q: %w", w.Name, err)
		}
		w.did("database %q made", w.Name)
		there.open, there.limit = true, w.ConnectionLimit
	}
	if there.made && there.open {
		if _, err := w.super.Exec(ctx, "REVOKE ALL ON DATABASE "+name+" FROM PUBLIC",
			pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("close the database %q to other roles: %w", w.Name, err)
		}
	}
	if there.limit != w.ConnectionLimit {
		statement := fmt.Sprintf("ALTER DATABASE %s CONNECTION LIMIT %d", name, w.ConnectionLimit)
		if _, err := w.super.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("limit the connections to the database %q: %w", w.Name, err)
		}
		w.did("connection limit of database %q changed", w.Name)
	}
	return nil
}

// ensureExtensions creates those that are missing.
func (w *work) ensureExtensions(ctx context.Context, conn *pgx.Conn) error {
	for _, name := range w.Extensions {
		made, err := EnsureExtension(ctx, conn, name)
		if err != nil {
			return refused(err, "make the extension "+name)
		}
		if made {
			w.did("extension %q made", name)
		}
	}
	return nil
}

// EnsureExtension creates an extension, and those it needs, where it is not there. Its objects go into the
// schema public, where applications look for them, except where the extension itself says another schema.
func EnsureExtension(ctx context.Context, conn *pgx.Conn, name string) (made bool, err error) {
	var there, fixed bool
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_extension WHERE extname = $1), coalesce(bool_or(v.schema IS NOT NULL), false)
		FROM pg_available_extension_versions v JOIN pg_available_extensions e
			ON e.name = v.name AND e.default_version = v.version
		WHERE e.name = $1`, name).Scan(&there, &fixed)
	if err != nil {
		return false, fmt.Errorf("look for it: %w", err)
	}
	if there {
		return false, nil
	}
	statement := "CREATE EXTENSION IF NOT EXISTS " + sql.Quote(name)
	if !fixed {
		statement += " SCHEMA public"
	}
	_, err = conn.Exec(ctx, statement+" CASCADE", pgx.QueryExecModeSimpleProtocol)
	return true, err
}

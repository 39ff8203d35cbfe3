package database

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// claims are in the database postgres, where nobody but a superuser can write. They say whose a database or a role
// is, whether we made it, and with what a role was granted last. A claim comes before the thing, so that nothing
// of ours is ever nobody's.
const claims = `
CREATE SCHEMA IF NOT EXISTS toban;
CREATE TABLE IF NOT EXISTS toban.claim (
	kind text NOT NULL,
	name text NOT NULL,
	claimant text NOT NULL,
	made boolean NOT NULL,
	granted text NOT NULL DEFAULT '',
	since timestamptz NOT NULL DEFAULT pg_catalog.now(),
	PRIMARY KEY (kind, name)
);
COMMENT ON SCHEMA toban IS 'Kept by the Toban operator';
COMMENT ON TABLE toban.claim IS 'Which PostgreSQL object has which database and role';
`

// The kinds of claims.
const (
	kindDatabase = "database"
	kindRole     = "role"
)

func (w *work) prepareClaims(ctx context.Context) error {
	there, err := w.haveClaims(ctx)
	if err != nil || there {
		return err
	}
	_, failed := w.super.Exec(ctx, claims, pgx.QueryExecModeSimpleProtocol)
	if failed == nil {
		return nil
	}
	if there, err := w.haveClaims(ctx); err == nil && there {
		return nil // another run has just made it
	}
	return fmt.Errorf("make the table toban.claim: %w", failed)
}

func (w *work) haveClaims(ctx context.Context) (bool, error) {
	return sql.Value[bool](ctx, w.super, "look for the table toban.claim",
		`SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'toban' AND c.relname = 'claim')`)
}

// claim is what is on record of a database or a role.
type claim struct {
	claimant string
	made     bool
	granted  string
}

func (w *work) claimOf(ctx context.Context, kind, name string) (claim, error) {
	var c claim
	err := w.super.QueryRow(ctx,
		"SELECT claimant, made, granted FROM toban.claim WHERE kind = $1 AND name = $2", kind, name).
		Scan(&c.claimant, &c.made, &c.granted)
	if errors.Is(err, pgx.ErrNoRows) {
		return claim{}, nil
	}
	if err != nil {
		return claim{}, fmt.Errorf("look whose the %s %q is: %w", kind, name, err)
	}
	return c, nil
}

// claim puts a claim on record. Made says that the thing is not there yet, and will be ours.
func (w *work) claim(ctx context.Context, kind, name string, made bool) error {
	return sql.Do(ctx, w.super, fmt.Sprintf("claim the %s %q", kind, name),
		`INSERT INTO toban.claim (kind, name, claimant, made) VALUES ($1, $2, $3, $4)
		ON CONFLICT (kind, name) DO UPDATE SET claimant = EXCLUDED.claimant, made = toban.claim.made OR EXCLUDED.made`,
		kind, name, w.Claimant, made)
}

func (w *work) release(ctx context.Context, kind, name string) error {
	return sql.Do(ctx, w.super, fmt.Sprintf("release the %s %q", kind, name),
		"DELETE FROM toban.claim WHERE kind = $1 AND name = $2", kind, name)
}

func (w *work) recordGrant(ctx context.Context, role, granted string) error {
	return sql.Do(ctx, w.super, fmt.Sprintf("note what %q was granted", role),
		"UPDATE toban.claim SET granted = $3 WHERE kind = $1 AND name = $2",
		kindRole, role, granted)
}

// claimed are the roles of the claimant, the last made first.
func (w *work) claimed(ctx context.Context) ([]string, error) {
	return sql.Column[string](ctx, w.super, "look for the roles of "+w.Claimant,
		"SELECT name FROM toban.claim WHERE kind = $1 AND claimant = $2 ORDER BY since DESC, name",
		kindRole, w.Claimant)
}

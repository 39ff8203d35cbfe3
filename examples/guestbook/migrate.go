package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A migration is one step of the schema. Those that have been in a version that was given out are never changed.
type migration struct {
	number    int
	name, sql string
}

//go:embed migrations/*.sql
var files embed.FS

var migrations = mustLoad()

func mustLoad() []migration {
	all, err := load(files)
	if err != nil {
		panic(err) // embedded: every test fails
	}
	return all
}

// load reads the migrations in the order of their names, which begin with their numbers.
func load(files embed.FS) ([]migration, error) {
	entries, err := files.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	var all []migration
	for _, e := range entries {
		digits, name, found := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		number, err := strconv.Atoi(digits)
		if err != nil || !found || number != len(all)+1 {
			return nil, fmt.Errorf("the migration %s should begin with %04d_", e.Name(), len(all)+1)
		}
		text, err := files.ReadFile(path.Join("migrations", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the migration %s: %w", e.Name(), err)
		}
		all = append(all, migration{number: number, name: strings.ReplaceAll(name, "_", " "), sql: string(text)})
	}
	return all, nil
}

const (
	record = `CREATE TABLE IF NOT EXISTS guestbook_migration (
		number     int PRIMARY KEY,
		name       text NOT NULL,
		applied_at timestamptz NOT NULL DEFAULT now())`
	// migrationLock is any number that nobody else in this database uses.
	migrationLock = 0x6775657374
	// An ALTER TABLE that waits for somebody's long transaction makes all others wait behind it.
	// It gives up and is tried again, and they get their turn in between.
	shortWait = "SET LOCAL lock_timeout = '2s'"
)

// migrate brings the schema to this version. It may run twice at once, be killed anywhere and be run again. A schema
// that is newer already is left as it is: each migration is one that the version before can live with, so going back is
// no more than starting that version again.
func (b *book) migrate(ctx context.Context, log *slog.Logger) error {
	for _, m := range migrations[:b.version] {
		did := false
		err := b.retry(ctx, func(ctx context.Context) error {
			var err error
			did, err = b.apply(ctx, m)
			return err
		})
		if err != nil {
			return fmt.Errorf("migration %d (%s): %w", m.number, m.name, explained(err))
		}
		if did {
			log.Info("migrated", "migration", m.number, "name", m.name)
		}
	}
	return b.retry(ctx, briefly(func(ctx context.Context) error {
		newest, err := b.schema(ctx)
		if err == nil {
			log.Info("the schema is ready", "version", b.version, "schema", newest)
		}
		return err
	}))
}

// apply makes one migration, unless it has been made: the lock, the step and the record of it are one transaction.
func (b *book) apply(ctx context.Context, m migration) (did bool, err error) {
	err = pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", migrationLock); err != nil {
			return fmt.Errorf("wait for other migrations: %w", err)
		}
		if _, err := tx.Exec(ctx, record); err != nil {
			return fmt.Errorf("make the record of migrations: %w", err)
		}
		tag, err := tx.Exec(ctx,
			"INSERT INTO guestbook_migration VALUES ($1, $2) ON CONFLICT DO NOTHING", m.number, m.name)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		did = true
		if _, err := tx.Exec(ctx, shortWait); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, m.sql, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	return did && err == nil, err
}

// schema is the number of the newest migration that the database has.
func (b *book) schema(ctx context.Context) (int, error) {
	newest := 0
	err := b.pool.QueryRow(ctx, "SELECT coalesce(max(number), 0) FROM guestbook_migration").Scan(&newest)
	if is(err, undefinedTable) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look for the schema's version: %w", err)
	}
	return newest, nil
}

// explained adds what PostgreSQL says in other fields than the message.
func explained(err error) error {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Detail == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, refused.Detail)
}

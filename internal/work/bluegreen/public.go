package bluegreen

import (
	"context"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// What drops the schema public, and what drops it with the note about that, in one transaction.
const (
	dropsPublic        = "drop schema if exists public"
	dropsPublicUnnoted = `do $$ begin
		drop schema if exists public;
		delete from toban_sides.noted where tag = 'DROP SCHEMA' and object = 'public';
	end $$`
)

// dropPublic drops the schema public, which pg_upgrade has made anew, in the databases of the following side of which
// isNew says that they do not follow since, by a statement, and in template1: where the serving side has none. One that
// holds something stays, and is a difference.
func dropPublic(
	ctx context.Context, l Link, isNew func(context.Context, *pgx.Conn) (bool, error), statement string,
) error {
	err := each(ctx, l.Following, func(conn *pgx.Conn, d database) error {
		if is, err := isNew(ctx, conn); err != nil || !is {
			return err
		}
		return dropPublicOf(ctx, l, conn, d, statement)
	})
	if err != nil {
		return err
	}
	for _, side := range []Side{l.Serving, l.Following} { // a template1 that is none is among the databases
		if is, err := isTemplate(ctx, side); err != nil || !is {
			return err
		}
	}
	_, err = in(ctx, l.Following, database{Name: "template1"}, func(conn *pgx.Conn, d database) (struct{}, error) {
		return struct{}{}, dropPublicOf(ctx, l, conn, d, dropsPublic) // it follows at no time, and has no notes
	})
	return err
}

// dropPublicOf does so in one database.
func dropPublicOf(ctx context.Context, l Link, conn *pgx.Conn, d database, statement string) error {
	const noSuchDatabase, holdsSomething = "3D000", "2BP01"
	lacks, err := in(ctx, l.Serving, d, func(conn *pgx.Conn, _ database) (bool, error) {
		return sql.Value[bool](ctx, conn, "look for the schema public", "select to_regnamespace('public') is null")
	})
	if sql.Code(err) == noSuchDatabase { // that is a difference of its own
		return nil
	}
	if err != nil || !lacks {
		return err
	}
	err = do(ctx, conn, "remove the schema public", "set session_replication_role = replica", statement)
	if sql.Code(err) == holdsSomething {
		return nil
	}
	return err
}

package bluegreen

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// progress is where subscriptions were that are there no more. It is a table, because neither a subscription nor its
// origin comes along when the data moves to another major version.
const progress = `create table if not exists toban_sides.progress (link text primary key, lsn pg_lsn not null)`

// whereItIs is where the subscription of a link is in a database, with its oid: null where it has applied nothing.
const whereItIs = `select s.oid, s.subname, pg_replication_origin_progress('pg_' || s.oid, true) as lsn
	from pg_subscription s join pg_database d on d.oid = s.subdbid
	where d.datname = current_database() and s.subname = `

// Leave has the following side stop, and forget its subscriptions. Where each was is noted before it is removed:
// PostgreSQL drops its origin at once, and does not take that back with the transaction. So what is noted stays if
// there is nothing to note any more. The slots of the serving side stay: Return goes on there.
func (s Subscriber) Leave(ctx context.Context) error {
	return each(ctx, s.Following, func(conn *pgx.Conn, _ database) error {
		there, err := s.subscribed(ctx, conn)
		if err != nil || !there {
			return err
		}
		if err := mustOwn(ctx, conn); err != nil {
			return err
		}
		if err := do(ctx, conn, "disable the subscription",
			fmt.Sprintf("alter subscription %s disable", s.Name)); err != nil {
			return err
		}
		if err := s.awaitIdle(ctx, conn); err != nil {
			return err
		}
		if err := do(ctx, conn, "note where the subscription is", "set synchronous_commit = on", progress,
			// One that has applied nothing yet goes on where its slot is.
			fmt.Sprintf(`insert into toban_sides.progress as noted
				select subname, coalesce(lsn, '0/0') from (%s%s) as it on conflict (link) do update
				set lsn = case excluded.lsn when '0/0' then noted.lsn else excluded.lsn end`,
				whereItIs, sql.Literal(s.Name))); err != nil {
			return err
		}
		return drop(ctx, conn, s.Name)
	})
}

// Subscribed says that the following side has a subscription in each database: it has not begun to leave.
func (s Subscriber) Subscribed(ctx context.Context) (bool, error) {
	there, err := gather(ctx, s.Following, func(conn *pgx.Conn, _ database) (bool, error) {
		return s.subscribed(ctx, conn)
	})
	return !slices.Contains(there, false), err
}

// awaitIdle waits until nobody applies what the subscription of a database brings: then its progress stays.
func (s Subscriber) awaitIdle(ctx context.Context, conn *pgx.Conn) error {
	return wait(ctx, "wait until the subscription is idle", func() (idle bool, err error) {
		return sql.Value[bool](ctx, conn, "look for who applies", `select not exists (select from pg_stat_subscription x
			join pg_subscription s on s.oid = x.subid join pg_database d on d.oid = s.subdbid
			where s.subname = $1 and d.datname = current_database() and x.pid is not null)`, s.Name)
	})
}

// Return makes the subscriptions anew that Leave has removed. Each begins where it was, also one that is there because
// Leave was cut off. They are not enabled.
func (l Link) Return(ctx context.Context) error {
	s := l.Subscriber()
	// Nobody may change the schema of a side that follows: so what notes that is not told of the schema public.
	if err := dropPublic(ctx, l, s.hasLeft, dropsPublicUnnoted); err != nil {
		return err
	}
	if err := each(ctx, s.Following, func(conn *pgx.Conn, _ database) error { return s.stay(ctx, conn) }); err != nil {
		return err
	}
	return l.make(ctx, s.left)
}

// hasLeft says that it is noted in a database where the subscription was.
func (s Subscriber) hasLeft(ctx context.Context, conn *pgx.Conn) (bool, error) {
	if there, err := own(ctx, conn); err != nil || !there {
		return false, err
	}
	if there, err := hasProgress(ctx, conn); err != nil || !there {
		return false, err
	}
	return sql.Value[bool](ctx, conn, "look for where the subscription was",
		"select exists (select from toban_sides.progress where link = $1)", s.Name)
}

// stay has a subscription of a link, if it is there, go on where it was when Leave noted that: its origin may have been
// dropped since.
func (s Subscriber) stay(ctx context.Context, conn *pgx.Conn) error {
	there, err := s.subscribed(ctx, conn)
	if err != nil || !there {
		return err
	}
	at, then, err := s.left(ctx, conn)
	if errors.Is(err, ErrMissing) { // it has never left
		return nil
	}
	if err != nil {
		return err
	}
	return do(ctx, conn, "have the subscription stay where it was", fmt.Sprintf(
		"select pg_replication_origin_advance('pg_' || oid, %s) from (%s%s) as it where lsn is null",
		sql.Literal(at.String()), whereItIs, sql.Literal(s.Name)), then)
}

// left is where the subscription of a database was, with the statement that forgets it.
func (s Subscriber) left(ctx context.Context, conn *pgx.Conn) (at wal.LSN, then string, err error) {
	if err := mustOwn(ctx, conn); err != nil {
		return 0, "", err
	}
	there, err := hasProgress(ctx, conn)
	if err != nil {
		return 0, "", err
	}
	var lsn string
	if there {
		err = conn.QueryRow(ctx, "select lsn::text from toban_sides.progress where link = $1", s.Name).Scan(&lsn)
	}
	if !there || errors.Is(err, pgx.ErrNoRows) {
		return 0, "", fmt.Errorf("%w: nobody has noted where the other side was", ErrMissing)
	}
	if err != nil {
		return 0, "", fmt.Errorf("look for where the subscription was: %w", err)
	}
	at, err = wal.ParseLSN(lsn)
	return at, forget(s.Name), err
}

// hasProgress says whether a database may have notes of where subscriptions were.
func hasProgress(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	return sql.Value[bool](ctx, conn, "look for where the subscription was",
		"select to_regclass('toban_sides.progress') is not null")
}

// forget is the statement that forgets where a subscription was.
func forget(subscription string) string {
	return "delete from toban_sides.progress where link = " + sql.Literal(subscription)
}

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

// Leave has the following side stop, and forget its subscriptions. Where each was is noted, in the transaction that
// removes it. The slots of the serving side stay: Return goes on there.
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
		return do(ctx, conn, "note where the subscription is, and remove it", progress,
			// One that has applied nothing yet goes on where its slot is.
			fmt.Sprintf(`insert into toban_sides.progress
				select s.subname, coalesce(pg_replication_origin_progress('pg_' || s.oid, true), '0/0')
				from pg_subscription s join pg_database d on d.oid = s.subdbid
				where d.datname = current_database() and s.subname = %s
				on conflict (link) do update set lsn = excluded.lsn`, sql.Literal(s.Name)),
			fmt.Sprintf("alter subscription %s set (slot_name = none)", s.Name), "drop subscription "+s.Name)
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
		err = conn.QueryRow(ctx, `select not exists (select from pg_stat_subscription x
			join pg_subscription s on s.oid = x.subid join pg_database d on d.oid = s.subdbid
			where s.subname = $1 and d.datname = current_database() and x.pid is not null)`, s.Name).Scan(&idle)
		if err != nil {
			return false, fmt.Errorf("look for who applies: %w", err)
		}
		return idle, nil
	})
}

// Return makes the subscriptions anew that Leave has removed. Each begins where it was. They are not enabled.
func (l Link) Return(ctx context.Context) error {
	return l.make(ctx, l.Subscriber().left)
}

// left is where the subscription of a database was, with the statement that forgets it.
func (s Subscriber) left(ctx context.Context, conn *pgx.Conn) (at wal.LSN, then string, err error) {
	if err := mustOwn(ctx, conn); err != nil {
		return 0, "", err
	}
	var there bool
	err = conn.QueryRow(ctx, "select to_regclass('toban_sides.progress') is not null").Scan(&there)
	if err != nil {
		return 0, "", fmt.Errorf("look for where the subscription was: %w", err)
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
	return at, "delete from toban_sides.progress where link = " + sql.Literal(s.Name), err
}

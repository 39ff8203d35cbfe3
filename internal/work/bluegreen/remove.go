package bluegreen

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// RemoveServing removes what the serving side has of a link: its publications and slots. Whoever reads a slot is ended.
func (l Link) RemoveServing(ctx context.Context) error {
	err := each(ctx, l.Serving, func(conn *pgx.Conn, _ database) error {
		var ours bool
		if err := conn.QueryRow(ctx, `select exists (select from pg_publication where pubname = $1
			and pg_get_userbyid(pubowner) = current_user)`, l.Name).Scan(&ours); err != nil {
			return fmt.Errorf("look for the publication: %w", err)
		}
		if !ours {
			return nil
		}
		return do(ctx, conn, "remove the publication", "drop publication if exists "+l.Name)
	})
	if err != nil {
		return err
	}
	conn, err := l.Serving.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	return wait(ctx, "remove the slots of "+l.Serving.Name, func() (bool, error) { return l.dropSlots(ctx, conn) })
}

// slotsOfLink are those of the link with the name $1.
const slotsOfLink = `from pg_replication_slots where slot_type = 'logical' and slot_name ~ ('^' || $1 || '_[0-9]+$')`

// dropSlots drops those that nobody reads, ends who reads the others, and says that none is left.
func (l Link) dropSlots(ctx context.Context, conn *pgx.Conn) (gone bool, err error) {
	if _, err := conn.Exec(ctx, "select pg_terminate_backend(active_pid) "+slotsOfLink+" and active_pid is not null",
		l.Name); err != nil {
		return false, fmt.Errorf("end who reads the slots: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) "+slotsOfLink+" and active_pid is null",
		l.Name); err != nil {
		const inUse, undefined = "55006", "42704"
		if code := sql.Code(err); code == inUse || code == undefined {
			return false, nil // in the moment between
		}
		return false, fmt.Errorf("drop the slots: %w", err)
	}
	if err := conn.QueryRow(ctx, "select not exists (select "+slotsOfLink+")", l.Name).Scan(&gone); err != nil {
		return false, fmt.Errorf("look for slots: %w", err)
	}
	return gone, nil
}

// RemoveFollowing removes the subscriptions. The serving side is not asked: its slots are removed by themselves.
func (l Link) RemoveFollowing(ctx context.Context) error {
	return each(ctx, l.Following, func(conn *pgx.Conn, _ database) error {
		there, err := l.subscribed(ctx, conn)
		if err != nil || !there {
			return err
		}
		return do(ctx, conn, "remove the subscription", fmt.Sprintf("alter subscription %s disable", l.Name),
			fmt.Sprintf("alter subscription %s set (slot_name = none)", l.Name), "drop subscription "+l.Name)
	})
}

// RemoveNotes removes what notices changes of the schema. It takes nothing along that somebody has made depend on it.
func RemoveNotes(ctx context.Context, side Side) error {
	return each(ctx, side, func(conn *pgx.Conn, _ database) error {
		var ours bool
		if err := conn.QueryRow(ctx, `select exists (select from pg_namespace n where n.nspname = $1
			and `+isOwn+` and obj_description(n.oid, 'pg_namespace') ~ ('^' || $2))`, schema, markPrefix).
			Scan(&ours); err != nil {
			return fmt.Errorf("look for the notes: %w", err)
		}
		if !ours {
			return nil
		}
		return do(ctx, conn, "remove the notes", "drop event trigger if exists toban_sides_drop",
			"drop event trigger if exists toban_sides_end", "drop function if exists toban_sides.note()",
			"drop table if exists toban_sides.noted, toban_sides.barrier, toban_sides.progress",
			"drop schema toban_sides")
	})
}

// Cancel removes all that there is of both links on a side. That side is then as it was without any.
func Cancel(ctx context.Context, side Side) error {
	for _, name := range []string{nameForward, nameBack} {
		l := Link{Serving: side, Following: side, Name: name}
		if err := l.RemoveFollowing(ctx); err != nil {
			return err
		}
		if err := l.RemoveServing(ctx); err != nil {
			return err
		}
	}
	return RemoveNotes(ctx, side)
}

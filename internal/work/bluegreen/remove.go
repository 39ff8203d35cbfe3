package bluegreen

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Remove removes what the serving side has of a link: its publications and slots. Whoever reads a slot is ended. What
// others have made with these names stays.
func (p Publisher) Remove(ctx context.Context) error {
	err := each(ctx, p.Serving, func(conn *pgx.Conn, _ database) error {
		ours, err := sql.Value[bool](ctx, conn, "look for the publication",
			`select exists (select from pg_publication where pubname = $1) and not `+foreignPublication, p.Name)
		if err != nil {
			return err
		}
		if !ours {
			return nil
		}
		return do(ctx, conn, "remove the publication", "drop publication if exists "+p.Name)
	})
	if err != nil {
		return err
	}
	conn, err := p.Serving.Connect(ctx, "postgres")
	if err != nil {
		return err
	}
	defer sql.HangUp(conn)
	slots, err := p.ourSlots(ctx)
	if err != nil || len(slots) == 0 {
		return err
	}
	return wait(ctx, "remove the slots of "+p.Serving.Name, func() (bool, error) { return dropSlots(ctx, conn, slots) })
}

// slotsOfLink are those of the link with the name $1.
const slotsOfLink = `from pg_replication_slots where slot_type = 'logical' and slot_name ~ ('^' || $1 || '_[0-9]+$')`

// dropSlots drops those of some slots that nobody reads, ends who reads the others, and says that none is left.
func dropSlots(ctx context.Context, conn *pgx.Conn, slots []string) (gone bool, err error) {
	const these = "from pg_replication_slots where slot_name = any ($1)"
	if _, err := conn.Exec(ctx, "select pg_terminate_backend(active_pid) "+these+" and active_pid is not null",
		slots); err != nil {
		return false, fmt.Errorf("end who reads the slots: %w", err)
	}
	if _, err := conn.Exec(ctx, "select pg_drop_replication_slot(slot_name) "+these+" and active_pid is null",
		slots); err != nil {
		const inUse, undefined = "55006", "42704"
		if code := sql.Code(err); code == inUse || code == undefined {
			return false, nil // in the moment between
		}
		return false, fmt.Errorf("drop the slots: %w", err)
	}
	return sql.Value[bool](ctx, conn, "look for slots", "select not exists (select "+these+")", slots)
}

// Remove removes the subscriptions. The serving side is not asked: its slots are removed by themselves. Each
// subscription is disabled before: if the removal is taken back, its origin is dropped all the same (Leave), and one
// that runs would apply once more what it has applied since its slot last moved on.
func (s Subscriber) Remove(ctx context.Context) error {
	return each(ctx, s.Following, func(conn *pgx.Conn, _ database) error {
		there, err := s.subscribed(ctx, conn)
		if errors.As(err, &InTheWay{}) { // it is somebody else's, and stays
			return nil
		}
		if err != nil || !there {
			return err
		}
		if err := do(ctx, conn, "disable the subscription",
			fmt.Sprintf("alter subscription %s disable", s.Name)); err != nil {
			return err
		}
		return drop(ctx, conn, s.Name)
	})
}

// drop removes the subscription of a database, which is disabled.
func drop(ctx context.Context, conn *pgx.Conn, subscription string) error {
	return do(ctx, conn, "remove the subscription",
		fmt.Sprintf("alter subscription %s set (slot_name = none)", subscription), "drop subscription "+subscription)
}

// RemoveNotes removes what notices changes of the schema. It takes nothing along that somebody has made depend on it.
func RemoveNotes(ctx context.Context, side Side) error {
	return each(ctx, side, func(conn *pgx.Conn, _ database) error {
		ours, err := sql.Value[bool](ctx, conn, "look for the notes",
			`select exists (select from pg_namespace n where n.nspname = $1
			and `+isOwn+` and obj_description(n.oid, 'pg_namespace') ~ ('^' || $2))`, schema, markPrefix)
		if err != nil {
			return err
		}
		if !ours {
			return nil
		}
		return do(ctx, conn, "remove the notes", "drop event trigger if exists toban_sides_drop",
			"drop event trigger if exists toban_sides_end", "drop function if exists toban_sides.note()",
			"drop table if exists toban_sides.noted, toban_sides.barrier, toban_sides.progress, "+
				"toban_sides.slot, toban_sides.compared",
			"drop schema toban_sides")
	})
}

// Cancel removes all that there is of both links on a side. That side is then as it was without any.
func Cancel(ctx context.Context, side Side) error {
	for _, name := range []string{nameForward, nameBack} {
		if err := (Subscriber{side, name}).Remove(ctx); err != nil {
			return err
		}
		if err := (Publisher{Serving: side, Name: name}).Remove(ctx); err != nil {
			return err
		}
	}
	return RemoveNotes(ctx, side)
}

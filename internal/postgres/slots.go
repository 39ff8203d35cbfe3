package postgres

import (
	"context"
	"errors"
	"fmt"

	"toban.dev/internal/postgres/sql"
)

// EnsureSlots makes the physical replication slots that are missing and drops
// those of ours (toban_…) that are not wanted or are lost because the WAL they
// reserved grew too large. On a standby it does the same.
func (s *Session) EnsureSlots(ctx context.Context, want []string) error {
	want = append([]string{}, want...) // nil would be NULL, of which nothing is known
	const drop = `select slot_name, pg_drop_replication_slot(slot_name) from pg_replication_slots
		where ` + ownSlot + ` and (not slot_name = any ($1) or wal_status = 'lost')`
	_, err := s.conn.Exec(ctx, drop, want)
	if err != nil {
		err = fmt.Errorf("drop replication slots: %w", err)
	}
	if err != nil && !RefusesBesides(err) {
		return err
	}
	return errors.Join(err, makeSlots(ctx, s, want))
}

// makeSlots makes those that are missing, each though another one is refused.
func makeSlots(ctx context.Context, s *Session, want []string) error {
	const look = `select name from unnest($1::text[]) name
		where not exists (select from pg_replication_slots where slot_name = name)`
	missing, err := sql.Column[string](ctx, s.conn, "look for replication slots", look, want)
	if err != nil {
		return err
	}
	var refused []error
	for _, slot := range missing {
		err := s.EnsureSlot(ctx, slot)
		if err != nil && !RefusesBesides(err) {
			return err
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// ownSlot is a condition on physical replication slots of ours (toban_…) that nobody uses.
const ownSlot = `slot_type = 'physical' and slot_name like 'toban\_%' and not active`

// ReserveSlots is EnsureSlots, and has each slot keep WAL from now on that nobody uses and that keeps none: PrepareSlots
// has made it while this server was a standby.
func (s *Session) ReserveSlots(ctx context.Context, want []string) error {
	const drop = `select pg_drop_replication_slot(slot_name) from pg_replication_slots
		where ` + ownSlot + ` and slot_name = any ($1) and restart_lsn is null`
	if _, err := s.conn.Exec(ctx, drop, append([]string{}, want...)); err != nil && !RefusesBesides(err) {
		return fmt.Errorf("drop replication slots that keep nothing: %w", err)
	}
	return s.EnsureSlots(ctx, want)
}

// PrepareSlots makes on a standby the slots that it will need as soon as it is a primary: to make one takes several
// writes to the disk, for which the first commits would wait. They keep no WAL until somebody uses them. It makes those
// in keeps, too, which keep WAL, and drops all others of ours that nobody uses, and those that have kept some.
func (s *Session) PrepareSlots(ctx context.Context, keeps, prepared []string) error {
	keeps, prepared = append([]string{}, keeps...), append([]string{}, prepared...)
	const drop = `select pg_drop_replication_slot(slot_name) from pg_replication_slots
		where ` + ownSlot + ` and (not slot_name = any ($1) or wal_status = 'lost')
		and (not slot_name = any ($2) or restart_lsn is not null)`
	_, err := s.conn.Exec(ctx, drop, keeps, prepared)
	if err != nil && !RefusesBesides(err) {
		return fmt.Errorf("drop replication slots: %w", err)
	}
	const prepare = `select pg_create_physical_replication_slot(name) from unnest($1::text[]) name
		where not exists (select from pg_replication_slots where slot_name = name)`
	_, refused := s.conn.Exec(ctx, prepare, prepared)
	if refused != nil && !RefusesBesides(refused) {
		return fmt.Errorf("prepare replication slots: %w", refused)
	}
	return errors.Join(err, refused, makeSlots(ctx, s, keeps))
}

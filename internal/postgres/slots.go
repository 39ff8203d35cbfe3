package postgres

import (
	"context"
	"errors"
	"fmt"

	"toban.dev/internal/postgres/sql"
)

// EnsureSlots makes the physical replication slots that are missing and drops
// those of ours (toban_…) that are not wanted or are lost because the WAL they
// reserved grew too large. On a standby it does the same; it may want none.
func (s *Session) EnsureSlots(ctx context.Context, want []string) error {
	want = append([]string{}, want...) // nil would be NULL, of which nothing is known
	const drop = `select slot_name, pg_drop_replication_slot(slot_name) from pg_replication_slots
		where slot_type = 'physical' and slot_name like 'toban\_%' and not active
		and (not slot_name = any ($1) or wal_status = 'lost')`
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

// EndFollowers ends the streams to those who follow this server, which follows another one: they would be sent WAL of a
// leader that they may not have heard of. A standby that follows lets nobody in for that (hbaConf), but a stream that
// began before, when it had been elected, goes on.
func (s *Session) EndFollowers(ctx context.Context) error {
	const query = "select pg_terminate_backend(pid) from pg_stat_replication where usename = $1"
	return sql.Do(ctx, s.conn, "end the streams to followers", query, RoleReplication)
}

package postgres

import (
	"context"
	"fmt"

	"toban.dev/internal/postgres/sql"
)

// ofLink are the slots and the subscription by which one side of a blue/green upgrade follows the other.
const (
	slotsOfLink        = `slot_type = 'logical' and slot_name ~ '^toban_to_(green|blue)_[0-9]+$'`
	subscriptionOfLink = `subname in ('toban_to_green', 'toban_to_blue')`
)

// KeepLinkSlots has a standby that follows a primary keep no slots of a link but those that come along from there, and
// says whether there are any. Others it has had as a primary itself: nobody moves them on, so that they would keep WAL
// for ever, and those of the primary can't come along while their names are taken.
func (s *Session) KeepLinkSlots(ctx context.Context) (synced bool, err error) {
	// Before PostgreSQL 17 there is no such column: none comes along.
	const comesAlong = `coalesce((to_jsonb(s) ->> 'synced')::boolean, false)`
	const drop = `select pg_drop_replication_slot(slot_name) from pg_replication_slots s
		where pg_is_in_recovery() and not active and not ` + comesAlong + ` and ` + slotsOfLink
	if _, err := s.conn.Exec(ctx, drop); err != nil {
		return false, fmt.Errorf("drop the slots of a former link: %w", err)
	}
	const look = `select exists (select from pg_replication_slots s where ` + comesAlong + ` and ` + slotsOfLink + `)`
	return sql.Value[bool](ctx, s.conn, "look for the slots of a link", look)
}

// Follows says whether the server follows the other side of a blue/green upgrade: it may write at any time then, though
// no client is there.
func (s *Session) Follows(ctx context.Context) (follows bool, err error) {
	const query = `select exists (select from pg_subscription where subenabled and ` + subscriptionOfLink + `)`
	return sql.Value[bool](ctx, s.conn, "look whether the server follows another side", query)
}

// GiveUpLink drops the slots of a link that keep more WAL than most (bytes), and says which: the other side, which
// has to begin anew then, gives way and not the volume. The slots of standbys, and those of applications, stay.
func (s *Session) GiveUpLink(ctx context.Context, most int64) (dropped []string, err error) {
	const keeps = `from pg_replication_slots where ` + slotsOfLink + ` and not pg_is_in_recovery()
		and pg_current_wal_lsn() - restart_lsn > $1`
	// Who reads one comes back soon: what is read again before it is dropped is so at the next time.
	const end = "select pg_terminate_backend(active_pid, 300) " + keeps + " and active"
	if _, err := s.conn.Exec(ctx, end, most); err != nil {
		return nil, fmt.Errorf("end who reads a link's slot: %w", err)
	}
	return sql.Column[string](ctx, s.conn, "drop the slots of a link",
		"select slot_name::text from (select slot_name, pg_drop_replication_slot(slot_name) "+keeps+
			" and not active) dropped", most)
}

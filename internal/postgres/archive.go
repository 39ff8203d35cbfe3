package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// duplicateObject is the SQLSTATE of what is there already (PostgreSQL 17 documentation, appendix A).
const duplicateObject = "42710"

// EnsureSlot makes a slot that keeps WAL from now on, unless it is there.
func (s *Session) EnsureSlot(ctx context.Context, slot string) error {
	const query = `select pg_create_physical_replication_slot($1, true)
		where not exists (select from pg_replication_slots where slot_name = $1)`
	_, err := s.conn.Exec(ctx, query, slot)
	// Another session of ours may have made it since the look.
	if sql.Code(err) == duplicateObject {
		return nil
	}
	if err != nil {
		return fmt.Errorf("make the replication slot %s: %w", slot, err)
	}
	return nil
}

// AdvanceSlot lets the server remove WAL before an LSN, as far as a slot keeps it. A
// slot does not go back, nor beyond what a standby has replayed (PostgreSQL 17 documentation, 9.28.6).
func (s *Session) AdvanceSlot(ctx context.Context, slot, lsn string) error {
	const query = `select pg_replication_slot_advance(slot_name, least($2::pg_lsn,
			case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end))
		from pg_replication_slots where slot_name = $1 and not active and restart_lsn < least($2::pg_lsn,
			case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end)`
	return sql.Do(ctx, s.conn, "advance the replication slot "+slot, query, slot, lsn)
}

// FlushedWAL is the end of the WAL that is on disk (primary).
func (s *Session) FlushedWAL(ctx context.Context) (wal.LSN, error) {
	text, err := sql.Value[string](ctx, s.conn, "ask how far the WAL is on disk",
		"select pg_current_wal_flush_lsn()::text")
	if err != nil {
		return 0, err
	}
	return wal.ParseLSN(text)
}

// InsertedWAL is the end of all WAL that there is (primary), also of that which is not written yet: a commit that waits
// for no disk is acknowledged before.
func (s *Session) InsertedWAL(ctx context.Context) (wal.LSN, error) {
	text, err := sql.Value[string](ctx, s.conn, "ask where the WAL ends", "select pg_current_wal_insert_lsn()::text")
	if err != nil {
		return 0, err
	}
	return wal.ParseLSN(text)
}

// KeptWAL is for whom a primary keeps WAL.
type KeptWAL struct {
	// Limit is max_slot_wal_keep_size in bytes: no slot keeps more. It is negative where nothing limits it.
	Limit int64
	// Slots are those that keep the most WAL, in this order.
	Slots []Slot
}

// Slot is a replication slot that keeps WAL.
type Slot struct {
	Name string
	// Bytes is how much WAL it keeps; Active says that somebody reads it now.
	Bytes  int64
	Active bool
}

// KeptWAL tells which replication slots of a primary keep so much WAL at least, nine of them at most. One that is lost
// keeps none.
func (s *Session) KeptWAL(ctx context.Context, least int64) (KeptWAL, error) {
	var out KeptWAL
	const limit = `select case when setting::bigint < 0 then -1 else setting::bigint << 20 end
		from pg_settings where name = 'max_slot_wal_keep_size'`
	if err := s.conn.QueryRow(ctx, limit).Scan(&out.Limit); err != nil {
		return KeptWAL{}, fmt.Errorf("ask how much WAL slots may keep: %w", err)
	}
	const query = `select * from (
			select slot_name::text, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint as bytes, active
			from pg_replication_slots where restart_lsn is not null and wal_status is distinct from 'lost') slots
		where bytes >= $1 order by bytes desc, slot_name limit 9`
	rows, err := s.conn.Query(ctx, query, least)
	if err != nil {
		return KeptWAL{}, fmt.Errorf("ask what keeps WAL: %w", err)
	}
	if out.Slots, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Slot]); err != nil {
		return KeptWAL{}, fmt.Errorf("ask what keeps WAL: %w", err)
	}
	return out, nil
}

// ofLink are the slots and the subscription by which one side of a blue/green upgrade follows the other.
const (
	slotsOfLink        = `slot_type = 'logical' and slot_name ~ '^toban_to_(green|blue)_[0-9]+$'`
	subscriptionOfLink = `subname in ('toban_to_green', 'toban_to_blue') and pg_get_userbyid(subowner) = 'postgres'`
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

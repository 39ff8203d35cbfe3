package postgres

import (
	"context"
	"fmt"

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

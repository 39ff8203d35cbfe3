package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

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

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"toban.dev/internal/postgres/sql"
)

// EnsureSlots makes the physical replication slots that are missing and drops
// those of ours (toban_…) that are not wanted or are lost because the WAL they
// reserved grew too large.
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

// PrepareSlots makes on a standby the slots of those who would follow it, beside those in keeps, and drops all others
// of ours that nobody uses. To make one takes several writes to the disk: who is promoted would make its first commits
// wait for that. A slot keeps hardly more WAL than the standby keeps by itself: all since its last restartpoint but one.
// Who has not come when it is promoted finds what it needs to be rewound to it, or to stream. A slot from when it was a
// primary is made anew where it is of WAL that it does not have any more, or keeps old rows: this server would tell its
// own primary of them (hot_standby_feedback), and no VACUUM would remove those anywhere.
func (s *Session) PrepareSlots(ctx context.Context, keeps, followers []string) error {
	followers = append([]string{}, followers...)
	const drop = `select pg_drop_replication_slot(slot_name) from pg_replication_slots
		where ` + ownSlot + ` and slot_name = any ($1)
		and (restart_lsn > pg_last_wal_replay_lsn() or xmin is not null or catalog_xmin is not null)`
	_, dropped := s.conn.Exec(ctx, drop, followers)
	if dropped != nil && !RefusesBesides(dropped) {
		return fmt.Errorf("drop replication slots of a former primary: %w", dropped)
	}
	made := s.EnsureSlots(ctx, slices.Concat(keeps, followers))
	if made != nil && !RefusesBesides(made) {
		return made
	}
	const advance = `select pg_replication_slot_advance(slot_name, least(redo_lsn, pg_last_wal_replay_lsn()))
		from pg_replication_slots, pg_control_checkpoint()
		where ` + ownSlot + ` and slot_name = any ($1) and restart_lsn < least(redo_lsn, pg_last_wal_replay_lsn())`
	return errors.Join(dropped, made, sql.Do(ctx, s.conn, "advance replication slots", advance, followers))
}

// EndFollowers ends the streams to those who follow this server, which is about to follow another one. A standby that
// follows one lets nobody follow it (hbaConf).
func (s *Session) EndFollowers(ctx context.Context) error {
	const query = "select pg_terminate_backend(pid) from pg_stat_replication where usename = $1"
	return sql.Do(ctx, s.conn, "end the streams to followers", query, RoleReplication)
}

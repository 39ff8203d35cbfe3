package postgres

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/wal"
)

// State is what a server says of itself. LSNs are as PostgreSQL writes them,
// e.g. "0/3000148", and empty where there is none.
type State struct {
	// Version as in "17.6".
	Version          string
	SystemIdentifier string
	InRecovery       bool
	// Timeline is the one that a primary writes now or that a standby receives.
	// Where a standby has no receiver it is the one of its control file, which may
	// be one that it has left since.
	Timeline wal.Timeline
	// LSN is the end of WAL written by a primary, or received and replayed by a standby.
	LSN string
	// Received is the end of the WAL that a standby's receivers have flushed since
	// it was started; it may be in the middle of a record. Replayed is the end of the
	// last record that it has replayed. A primary has neither.
	Received, Replayed string
	// Streaming says whether a standby's WAL receiver streams, and Hangs that it does not, though it may say so.
	Streaming, Hangs bool
	// Took is how long the server took for what waits for no disk.
	Took time.Duration
	// Started tells this run of the server from any other of the instance: when its postmaster began, in microseconds.
	Started string
}

// The file name has the timeline that is written: the control file has that of
// the last checkpoint, which is an older one for a while after a promotion.
// Recovery is looked at once, before the rest: it ends and never comes back, so
// what only a primary may be asked is not asked of a standby.
// A receiver that hears nothing for wal_receiver_timeout ends by itself. One that is still there then hangs.
const stateQuery = `
with role as materialized (select pg_is_in_recovery() as recovers)
select split_part(current_setting('server_version'), ' ', 1),
       recovers,
       case when recovers
            then (select received_tli from pg_stat_wal_receiver)
            else ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int end,
       case when recovers
            then greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
            else pg_current_wal_lsn() end::text,
       case when recovers then pg_last_wal_receive_lsn() end::text,
       case when recovers then pg_last_wal_replay_lsn() end::text,
       coalesce((select status = 'streaming' from pg_stat_wal_receiver), false),
       coalesce((select status = 'streaming' and wait > '0'
                 and last_msg_receipt_time < clock_timestamp() - wait - '5 s'::interval
            from pg_stat_wal_receiver, (select current_setting('wal_receiver_timeout')::interval as wait) w), false),
       (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint::text
from role`

// Who reads the control file waits for who writes it, with the disk: ControlFileLock is held while the file is flushed
// (PostgreSQL 18, UpdateControlFile and pg_control_system). So it is asked apart, and no more often than needed.
const (
	identifierQuery = `select system_identifier::text from pg_control_system()`
	timelineQuery   = `
select greatest((select min_recovery_end_timeline from pg_control_recovery()),
                (select timeline_id from pg_control_checkpoint()))`
)

// State asks the server for its state.
func (s *Session) State(ctx context.Context) (State, error) { return s.StateWithin(ctx, ctx) }

// StateWithin does the same, and waits no longer than memory for what the server has in memory: that waits for no disk.
// With an error, Took says how long that took, and is zero where it is what has failed.
func (s *Session) StateWithin(ctx, memory context.Context) (State, error) {
	state, timeline, err := s.live(memory)
	if err != nil {
		return State{}, err
	}
	if s.identifier == "" {
		if err := s.conn.QueryRow(ctx, identifierQuery).Scan(&s.identifier); err != nil {
			return State{Took: state.Took}, fmt.Errorf("ask the server for its system identifier: %w", err)
		}
	}
	state.SystemIdentifier = s.identifier
	if timeline != nil {
		state.Timeline = *timeline
	} else if err := s.conn.QueryRow(ctx, timelineQuery).Scan(&state.Timeline); err != nil {
		return State{Took: state.Took}, fmt.Errorf("ask the server for the timeline of its control file: %w", err)
	}
	return state, nil
}

// live is what the server has in memory. The timeline is nil where a standby has no receiver.
func (s *Session) live(ctx context.Context) (state State, timeline *wal.Timeline, err error) {
	var lsn, received, replayed *string
	began := time.Now()
	err = s.conn.QueryRow(ctx, stateQuery).Scan(&state.Version, &state.InRecovery, &timeline,
		&lsn, &received, &replayed, &state.Streaming, &state.Hangs, &state.Started)
	if err != nil {
		return State{}, nil, fmt.Errorf("ask the server for its state: %w", err)
	}
	state.Took, state.Streaming = time.Since(began), state.Streaming && !state.Hangs
	state.LSN, state.Received, state.Replayed = orEmpty(lsn), orEmpty(received), orEmpty(replayed)
	return state, timeline, nil
}

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

package postgres

import (
	"context"

	"toban.dev/internal/postgres/sql"
)

// PauseReplay has a standby replay no more WAL, until ResumeReplay, a promotion, or its end. It receives WAL as
// before.
func (s *Session) PauseReplay(ctx context.Context) error {
	return sql.Do(ctx, s.conn, "pause replay", "select pg_wal_replay_pause()")
}

// ResumeReplay has a standby go on. A server that is a primary by now has gone on already.
func (s *Session) ResumeReplay(ctx context.Context) error {
	const statement = "do $$ begin if pg_is_in_recovery() then perform pg_wal_replay_resume(); end if; end $$"
	return sql.Do(ctx, s.conn, "resume replay", statement)
}

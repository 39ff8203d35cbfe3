package postgres

import (
	"context"
	"fmt"
)

// PauseReplay has a standby replay no more WAL, until ResumeReplay, a promotion, or its end. It receives WAL as
// before.
func (s *Session) PauseReplay(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, "select pg_wal_replay_pause()"); err != nil {
		return fmt.Errorf("pause replay: %w", err)
	}
	return nil
}

// ResumeReplay has a standby go on. A server that is a primary by now has gone on already.
func (s *Session) ResumeReplay(ctx context.Context) error {
	const statement = "do $$ begin if pg_is_in_recovery() then perform pg_wal_replay_resume(); end if; end $$"
	if _, err := s.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("resume replay: %w", err)
	}
	return nil
}

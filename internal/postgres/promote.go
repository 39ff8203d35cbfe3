package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// promoteInterval is how often Promote looks whether the server is a primary.
const promoteInterval = 5 * time.Millisecond

// Promote makes a standby a primary and returns when it takes writes. It first
// replays all WAL that it has. The checkpoint that follows a promotion goes on in
// the background; until it is written, the control file has the former timeline.
// When ctx ends, the promotion may go on.
func (s *Session) Promote(ctx context.Context) error {
	var told bool
	if err := s.conn.QueryRow(ctx, "select pg_promote(wait => false)").Scan(&told); err != nil {
		return fmt.Errorf("promote the server: %w", err)
	}
	if !told {
		return errors.New("promote the server: it could not be told to")
	}
	for {
		var recovers bool
		if err := s.conn.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovers); err != nil {
			return fmt.Errorf("wait for the promotion: %w", err)
		}
		if !recovers {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the promotion: %w", ctx.Err())
		case <-time.After(promoteInterval):
		}
	}
}

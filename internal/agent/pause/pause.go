// Package pause waits in a loop that can be told to end.
package pause

import (
	"context"
	"time"
)

// For waits; it is false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

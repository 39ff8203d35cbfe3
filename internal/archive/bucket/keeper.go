package bucket

import (
	"context"
	"fmt"
)

// keeper is a bucket in which nothing is removed. The store is to refuse it too: this is so that nobody asks.
type keeper struct{ Bucket }

func (keeper) Delete(_ context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("delete %s and %d more: %w: only the credentials for deletion may do that",
		names[0], len(names)-1, ErrDenied)
}

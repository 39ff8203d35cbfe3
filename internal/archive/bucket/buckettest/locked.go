package buckettest

import (
	"context"
	"fmt"

	"toban.dev/internal/archive/bucket"
)

// Locked is a bucket that lets nothing be replaced or removed.
type Locked struct{ *Memory }

// Put implements bucket.Bucket.
func (l Locked) Put(ctx context.Context, name string, content []byte) error {
	if err := l.Create(ctx, name, content); err != nil {
		return fmt.Errorf("%w: %w", bucket.ErrDenied, err)
	}
	return nil
}

// Delete implements bucket.Bucket.
func (l Locked) Delete(context.Context, ...string) error {
	return fmt.Errorf("by its policy: %w", bucket.ErrDenied)
}

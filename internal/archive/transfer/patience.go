// Package transfer brings objects of an archive from and to its bucket: patiently where that is away, as many side by
// side as the machine can take, in order where the order matters, and with the progress of it.
package transfer

import (
	"context"
	"errors"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// The tries of a request to the bucket, on top of the bucket's own of some seconds each.
const (
	// attemptPause is the first pause between two; each is twice the one before, up to attemptPauseMost.
	attemptPause     = 200 * time.Millisecond
	attemptPauseMost = time.Minute
	// attemptPatience is for how long a bucket may be away that is not refused for good. It is shorter than the time
	// after which a backup without a new object counts as given up.
	attemptPatience = time.Hour
)

type waitsKey struct{}

// WithWaits has waits called, maybe by several at once, with what the bucket says each time before another request is
// tried a while later: in what Take, Restore, Unpack, Verify and Patiently do with the context.
func WithWaits(ctx context.Context, waits func(error)) context.Context {
	return context.WithValue(ctx, waitsKey{}, waits)
}

// Patiently does something with the bucket until it succeeds, or another try is of no use, or an hour has passed.
func Patiently(ctx context.Context, do func() error) error {
	end := time.Now().Add(attemptPatience)
	for pause := attemptPause; ; pause = min(2*pause, attemptPauseMost) {
		err := do()
		if err == nil || hopeless(err) || time.Now().Add(pause).After(end) {
			return err
		}
		if waits, ok := ctx.Value(waitsKey{}).(func(error)); ok {
			waits(err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(pause):
		}
	}
}

func hopeless(err error) bool {
	var object *format.ObjectError
	return bucket.Lasting(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &object)
}

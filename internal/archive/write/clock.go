package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// noteBegin notes when the term began, unless its term history says that this is long ago.
func (a *Archiver) noteBegin(ctx context.Context) error {
	for _, err := range a.Bucket.List(ctx, a.folder+format.FileLineage) {
		if err != nil {
			return fmt.Errorf("look whether the term has begun: %w", err)
		}
		return nil
	}
	return a.noteClock(ctx, format.ClockNote{Began: true, LSN: a.first.lsn, At: a.first.at})
}

// noteWaiting notes when there was more WAL on disk than what is archived: what is archived has no later commit.
func (a *Archiver) noteWaiting(ctx context.Context) error {
	a.mutex.Lock()
	i := slices.IndexFunc(a.seen, func(s sample) bool { return s.lsn > a.state.Archived })
	var first sample
	if i >= 0 {
		first = a.seen[i]
	}
	a.mutex.Unlock()
	if i < 0 {
		return nil
	}
	return a.noteClock(ctx, format.ClockNote{LSN: first.lsn, At: first.at})
}

func (f *termFolder) noteClock(ctx context.Context, n format.ClockNote) error {
	content := fmt.Sprintf("The WAL ended at %s when the leader's clock showed %s.\n", n.LSN,
		n.At.UTC().Format(format.TimeFormat))
	err := f.Bucket.Create(ctx, f.folder+n.Name(), []byte(content))
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("note the time: %w", err)
	}
	return nil
}

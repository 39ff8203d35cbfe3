package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// noteKey writes for whom it is encrypted from here on, before anything is, unless the last note says the same. It does
// not where the leader goes on before its place: the server may still have WAL that retention has removed.
func (f *termFolder) noteKey(ctx context.Context, from, ahead wal.LSN) error {
	recipient := f.Encoder.Recipient()
	if recipient == "" {
		return nil
	}
	last, began, err := f.lastKey(ctx)
	if err != nil || last.Recipient == recipient && last.From <= from {
		return err
	}
	note := format.KeyNote{Number: last.Number + 1, From: from, Ahead: ahead, Recipient: recipient}
	if last.Number == 0 && began {
		note.Number++
	}
	content := []byte("From here on objects are encrypted for " + recipient + ".\n")
	err = f.Bucket.Create(ctx, f.folder+note.Name(), content)
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("note for which key is encrypted: %w", err)
	}
	return nil
}

// lastKey is the last note in the own folder, empty if there is none, and whether there is something else. The names of
// WAL come before those of notes.
func (f *termFolder) lastKey(ctx context.Context) (last format.KeyNote, began bool, err error) {
	for o, err := range f.Bucket.List(ctx, f.folder+format.KeyPrefix) {
		if err != nil {
			return last, false, fmt.Errorf("look for notes of keys: %w", err)
		}
		if note, ok := format.ParseKeyNote(strings.TrimPrefix(o.Name, f.folder)); ok && note.Number > last.Number {
			last = note
		}
	}
	for o, err := range f.Bucket.List(ctx, f.folder) {
		if err != nil {
			return last, false, fmt.Errorf("look what is in the folder of the term: %w", err)
		}
		return last, !strings.HasPrefix(o.Name, f.folder+format.KeyPrefix), nil
	}
	return last, false, nil
}

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

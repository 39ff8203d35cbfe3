package write

import (
	"context"
	"errors"
	"fmt"
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

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// clockNotes are those of a term.
func (t *Term) clockNotes() (notes []format.ClockNote) {
	for _, o := range t.Clocks {
		if note, ok := format.ParseClockNote(o.Name[strings.LastIndexByte(o.Name, '/')+1:]); ok {
			notes = append(notes, note)
		}
	}
	return notes
}

// began is when the leader of a term began, by its own clock; zero if nobody has noted it.
func (t *Term) began() (first time.Time) {
	for _, n := range t.clockNotes() {
		if n.Began {
			first = earlier(first, n.At)
		}
	}
	return first
}

// earlier is the first of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// passed is when the WAL of a term history had reached an LSN, by the clock of a leader; zero if none has noted it.
// What lies before that LSN has no later commit.
func (c Catalogue) passed(history []ha.TermStart, lsn wal.LSN) (first time.Time) {
	for i, start := range history {
		term := c.Terms[start.Term]
		if term == nil || lsn > format.Cutoff(history, i) {
			continue // that is of another leader
		}
		for _, n := range term.clockNotes() {
			if n.LSN >= lsn {
				first = earlier(first, n.At)
			}
		}
	}
	return first
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

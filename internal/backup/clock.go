package backup

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// clockNote says that the WAL of a term's leader ended at an LSN when its clock showed a time. It is the name of an
// object in the term's folder. The times that a store has of its objects say when they got there: in a copied archive
// that is much later, and a moment without WAL would seem to have some.
type clockNote struct {
	// Began says that it is the first that the leader knows of its term.
	Began bool
	LSN   wal.LSN
	At    time.Time
}

// beganPrefix and reachedPrefix begin the names of notes of clocks.
const (
	beganPrefix   = "began-"
	reachedPrefix = "reached-"
)

// clockFormat is as exact as the times of commits.
const clockFormat = "20060102T150405.000000Z"

var clockName = regexp.MustCompile(`^(began-|reached-)([0-9A-F]{16})-([0-9]{8}T[0-9]{6}\.[0-9]{6}Z)$`)

// name is that of the note in a term's folder.
func (n clockNote) name() string {
	prefix := reachedPrefix
	if n.Began {
		prefix = beganPrefix
	}
	return fmt.Sprintf("%s%016X-%s", prefix, uint64(n.LSN), n.At.UTC().Format(clockFormat))
}

// parseClockNote is the note of which that is the name; false for any other name.
func parseClockNote(name string) (clockNote, bool) {
	m := clockName.FindStringSubmatch(name)
	if m == nil {
		return clockNote{}, false
	}
	lsn, _ := strconv.ParseUint(m[2], 16, 64) // the expression has seen to it
	at, err := time.Parse(clockFormat, m[3])
	return clockNote{m[1] == beganPrefix, wal.LSN(lsn), at}, err == nil
}

// clockNotes are those of a term.
func (t *Term) clockNotes() (notes []clockNote) {
	for _, o := range t.Clocks {
		if note, ok := parseClockNote(o.Name[strings.LastIndexByte(o.Name, '/')+1:]); ok {
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
		if term == nil || lsn > cutoff(history, i) {
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
	for _, err := range a.Bucket.List(ctx, a.folder+FileLineage) {
		if err != nil {
			return fmt.Errorf("look whether the term has begun: %w", err)
		}
		return nil
	}
	return a.noteClock(ctx, clockNote{Began: true, LSN: a.first.lsn, At: a.first.at})
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
	return a.noteClock(ctx, clockNote{LSN: first.lsn, At: first.at})
}

func (f *termFolder) noteClock(ctx context.Context, n clockNote) error {
	content := fmt.Sprintf("The WAL ended at %s when the leader's clock showed %s.\n", n.LSN,
		n.At.UTC().Format(timeFormat))
	err := f.Bucket.Create(ctx, f.folder+n.name(), []byte(content))
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("note the time: %w", err)
	}
	return nil
}

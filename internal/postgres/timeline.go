package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"toban.dev/internal/wal"
)

// WALDirectory is pg_wal: the folder of the WAL and of the history files.
type WALDirectory string

// Fork is the LSN at which a timeline begins, 0 for the first. It is an error when its history is not there, as before
// it has been received.
func (w WALDirectory) Fork(timeline wal.Timeline) (wal.LSN, error) {
	h, err := w.history(timeline)
	if err == nil && timeline > 1 && len(h.Before) == 0 {
		err = errors.New("the history is empty")
	}
	if err != nil {
		return 0, fmt.Errorf("look where timeline %d begins: %w", timeline, err)
	}
	return h.Begin(), nil
}

// Branch is the LSN at which the history of a timeline left an earlier one. Where it never was on that, it is where the
// timeline begins. Between the two lie those of promotions that were cut short.
func (w WALDirectory) Branch(timeline, earlier wal.Timeline) (wal.LSN, error) {
	h, err := w.history(timeline)
	if err != nil {
		return 0, err
	}
	if at, was := h.Left(earlier); was {
		return at, nil
	}
	return h.Begin(), nil
}

// ForkFrom is the first LSN at or after one at which the history of a timeline goes on to another timeline. Where there
// is none, it is where the timeline begins.
func (w WALDirectory) ForkFrom(timeline wal.Timeline, from wal.LSN) (wal.LSN, error) {
	h, err := w.history(timeline)
	if err != nil {
		return 0, err
	}
	if at, ok := h.Switch(from); ok {
		return min(at, h.Begin()), nil
	}
	return h.Begin(), nil
}

// ForgetTimelines removes what pg_wal has of timelines after the given one:
// histories and WAL. A former, abandoned timeline may bear the same number as a
// new one; its WAL then would be replayed in the new one's place. The server
// must not run, and its data must not be of such a timeline.
func (w WALDirectory) ForgetTimelines(after wal.Timeline) error {
	entries, err := os.ReadDir(string(w))
	if err != nil {
		return fmt.Errorf("forget the timelines after %d: %w", after, err)
	}
	for _, entry := range entries {
		if timeline, ok := wal.TimelineOf(entry.Name()); !ok || timeline <= after {
			continue
		}
		if err := os.Remove(filepath.Join(string(w), entry.Name())); err != nil {
			return fmt.Errorf("forget the timelines after %d: %w", after, err)
		}
	}
	return syncFolder(string(w))
}

// HasTimelines says whether pg_wal has anything of timelines after the given one.
func (w WALDirectory) HasTimelines(after wal.Timeline) (bool, error) {
	entries, err := os.ReadDir(string(w))
	if err != nil {
		return false, fmt.Errorf("look for timelines after %d: %w", after, err)
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		timeline, ok := wal.TimelineOf(entry.Name())
		return ok && timeline > after
	}), nil
}

// ForgetSuperseded removes the WAL files of former timelines whose segment a later timeline of the history has a
// file for, too: each promotion copies the segment that it happens in, and PostgreSQL keeps all of these
// files for as long as it keeps WAL of their position. With many promotions and few writes they fill
// the volume. A standby needs them which is still on one of those timelines: it streams from the file of the next
// one (WalSndSegmentOpen in walsender.c). So all have to be on the current timeline.
func (w WALDirectory) ForgetSuperseded(current wal.Timeline) (removed int, err error) {
	h, err := w.history(current)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir(string(w))
	if err != nil {
		return 0, fmt.Errorf("forget superseded WAL: %w", err)
	}
	there := map[string]bool{}
	for _, entry := range entries {
		there[entry.Name()] = true
	}
	for name := range there {
		segment, ok := wal.ParseSegment(name, wal.SegmentSize)
		if !ok {
			continue
		}
		if later, ok := supersedes(h, segment); !ok || !there[later.String()] {
			continue
		}
		if err := os.Remove(filepath.Join(string(w), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return removed, fmt.Errorf("forget superseded WAL: %w", err)
		}
		removed++
	}
	return removed, nil
}

// history is how a timeline came about. The first has no history file.
func (w WALDirectory) history(timeline wal.Timeline) (wal.History, error) {
	if timeline <= 1 {
		return wal.History{Timeline: timeline}, nil
	}
	text, err := os.ReadFile(filepath.Join(string(w), timeline.HistoryFile()))
	if err != nil {
		return wal.History{}, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
	}
	h, err := wal.ParseHistory(timeline, string(text))
	if err != nil {
		return wal.History{}, fmt.Errorf("read the history of timeline %d: %w", timeline, err)
	}
	return h, nil
}

// supersedes is the segment that PostgreSQL reads in the place of one: that of the newest timeline which begins in or
// before it. False where it is no later one.
func supersedes(h wal.History, s wal.Segment) (wal.Segment, bool) {
	newest := h.Newest(s.End())
	later := newest > s.Timeline
	s.Timeline = newest
	return s, later
}

// Open opens a file to read, by its name.
func (w WALDirectory) Open(name string) (*os.File, error) {
	file, err := os.Open(filepath.Join(string(w), filepath.Base(name)))
	if err != nil {
		return nil, fmt.Errorf("open the WAL: %w", err)
	}
	return file, nil
}

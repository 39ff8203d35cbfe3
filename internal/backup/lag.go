package backup

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/wal"
)

// sample is up to where WAL was on disk at a moment.
type sample struct {
	lsn wal.LSN
	at  time.Time
}

// State is how far the archive is.
func (a *Archiver) State() State {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.state
}

// change changes the state, and tells of it.
func (a *Archiver) change(change func(*State)) {
	a.telling.Lock()
	defer a.telling.Unlock()
	a.mutex.Lock()
	before := a.state
	change(&a.state)
	after := a.state
	a.mutex.Unlock()
	if a.Changed != nil && before != after {
		a.Changed(after)
	}
}

// watch looks how far the WAL is while a step takes long: what waits for a store that hangs is behind, too.
func (a *Archiver) watch(ctx context.Context, every time.Duration) {
	for sleep(ctx, every) {
		a.mutex.Lock()
		busy := a.Now().Sub(a.asked) > every
		a.mutex.Unlock()
		if !busy {
			continue
		}
		a.change(a.measure)
		// A server that does not answer is an error of the step.
		_, _ = a.look(ctx)
	}
}

// look asks the server how far its WAL is, and notes it.
func (a *Archiver) look(ctx context.Context) (wal.LSN, error) {
	flushed, err := a.Source.Flushed(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask how far the WAL is on disk: %w", err)
	}
	a.change(func(s *State) {
		a.asked = a.Now()
		if a.first.at.IsZero() {
			a.first = sample{flushed, a.asked}
		}
		if n := len(a.seen); n == 0 || a.seen[n-1].lsn < flushed {
			a.seen = thinned(append(a.seen, sample{flushed, a.asked}))
		}
		s.Flushed = max(s.Flushed, flushed)
		a.forget(s, a.cleared)
		a.measure(s)
	})
	return flushed, nil
}

// thinned leaves every second one out where there are too many, but not the first, which the lag goes by.
func thinned(seen []sample) []sample {
	if len(seen) <= samples {
		return seen
	}
	kept := seen[:0]
	for i, s := range seen {
		if i%2 == 0 || i == len(seen)-1 {
			kept = append(kept, s)
		}
	}
	return kept
}

// reached moves the archived position, which never goes back.
func (a *Archiver) reached(lsn wal.LSN) {
	a.change(func(s *State) {
		s.Archived = max(s.Archived, lsn)
		a.forget(s, s.Archived)
		a.measure(s)
	})
}

// nothingWaits notes that all WAL before an LSN that is not archived is idle.
func (a *Archiver) nothingWaits(before wal.LSN) {
	a.change(func(s *State) {
		a.forget(s, before)
		a.measure(s)
	})
}

// forget drops the samples of WAL before an LSN, which does not wait any more.
func (a *Archiver) forget(s *State, lsn wal.LSN) {
	a.cleared = max(a.cleared, lsn)
	for len(a.seen) > 0 && a.seen[0].lsn <= a.cleared {
		at := a.seen[0].at
		all := len(a.seen) == 1 && a.cleared >= s.Flushed
		if all {
			at = a.asked // there was no more then
		}
		if at.After(s.ArchivedAt) {
			s.ArchivedAt = at
		}
		if all {
			return
		}
		a.seen = a.seen[1:]
	}
}

// measure says for how long the WAL has waited that waits longest.
func (a *Archiver) measure(s *State) {
	s.Behind = 0
	if n := len(a.seen); n > 0 && a.seen[n-1].lsn > a.cleared && !s.ArchivedAt.IsZero() {
		s.Behind = a.Now().Sub(s.ArchivedAt).Truncate(time.Second / 10)
	}
}

// waitsSince is since when WAL waits that is not idle.
func (a *Archiver) waitsSince() time.Time {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if len(a.seen) == 0 {
		return a.Now()
	}
	return a.seen[0].at
}

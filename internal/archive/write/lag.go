package write

import (
	"context"
	"fmt"
	"sync"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/wal"
)

// sample is up to where WAL was on disk at a moment.
type sample struct {
	lsn wal.LSN
	at  time.Time
}

// lag is how far the archive is behind the server.
type lag struct {
	options *ArchiverOptions

	mutex sync.Mutex
	state State
	first sample    // the first that was seen
	seen  []sample  // of what waits, or the last that does not
	asked time.Time // when the server was last asked how far it is
	// cleared is up to where no WAL waits: it is archived, or idle.
	cleared wal.LSN

	telling sync.Mutex // while Changed is called
}

// State is how far the archive is.
func (l *lag) State() State {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.state
}

// change changes the state, and tells of it.
func (l *lag) change(change func(*State)) {
	l.telling.Lock()
	defer l.telling.Unlock()
	l.mutex.Lock()
	before := l.state
	change(&l.state)
	after := l.state
	l.mutex.Unlock()
	if l.options.Changed != nil && before != after {
		l.options.Changed(after)
	}
}

// watch looks how far the WAL is while a step takes long: what waits for a store that hangs is behind, too.
func (a *Archiver) watch(ctx context.Context, every time.Duration) {
	for pause.For(ctx, every) {
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
func (l *lag) reached(lsn wal.LSN) {
	l.change(func(s *State) {
		s.Archived = max(s.Archived, lsn)
		l.forget(s, s.Archived)
		l.measure(s)
	})
}

// nothingWaits notes that all WAL before an LSN that is not archived is idle.
func (l *lag) nothingWaits(before wal.LSN) {
	l.change(func(s *State) {
		l.forget(s, before)
		l.measure(s)
	})
}

// forget drops the samples of WAL before an LSN, which does not wait any more.
func (l *lag) forget(s *State, lsn wal.LSN) {
	l.cleared = max(l.cleared, lsn)
	for len(l.seen) > 0 && l.seen[0].lsn <= l.cleared {
		at := l.seen[0].at
		all := len(l.seen) == 1 && l.cleared >= s.Flushed
		if all {
			at = l.asked // there was no more then
		}
		if at.After(s.ArchivedAt) {
			s.ArchivedAt = at
		}
		if all {
			return
		}
		l.seen = l.seen[1:]
	}
}

// measure says for how long the WAL has waited that waits longest.
func (l *lag) measure(s *State) {
	s.Behind = 0
	if n := len(l.seen); n > 0 && l.seen[n-1].lsn > l.cleared && !s.ArchivedAt.IsZero() {
		s.Behind = l.options.Now().Sub(s.ArchivedAt).Truncate(time.Second / 10)
	}
}

// waitsSince is since when WAL waits that is not idle.
func (l *lag) waitsSince() time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.seen) == 0 {
		return l.options.Now()
	}
	return l.seen[0].at
}

package running

import (
	"log/slog"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// togetherLimit is how long all must have streamed from a leader for nobody to need WAL of former timelines.
const togetherLimit = 3 * time.Second

// superseded removes WAL files of former timelines that a newer one has. Only the monitor uses it.
type superseded struct {
	hardState func() ha.HardState
	// allStream says that the leader leads, and every other member streams from it.
	allStream func() bool
	// forget removes the files that a timeline has made superfluous, and says how many.
	forget   func(current wal.Timeline) (removed int, err error)
	log      *slog.Logger
	together time.Time // since when all members stream from the leader of the term, zero while not all do
	term     uint64    // that term
	pruned   uint64    // the term in which they were removed
}

// remove removes them, once in a term, when nobody can need them any more.
func (s *superseded) remove() error {
	m := s.hardState()
	if !s.allStream() || s.term != m.Ballot.Term {
		s.together, s.term = time.Time{}, m.Ballot.Term
		return nil
	}
	if s.together.IsZero() {
		s.together = time.Now()
	}
	last := len(m.TermHistory) - 1
	if s.pruned == s.term || time.Since(s.together) < togetherLimit || last < 0 || m.TermHistory[last].Term != s.term ||
		m.TermHistory[last].Timeline == 0 {
		return nil
	}
	removed, err := s.forget(m.TermHistory[last].Timeline)
	if err != nil {
		return err
	}
	if s.pruned = s.term; removed > 0 {
		s.log.Info("removed WAL files of former timelines", "files", removed)
	}
	return nil
}

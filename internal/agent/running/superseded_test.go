package running

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

func TestWALOfFormerTimelinesIsRemovedOnceInATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hardState := ha.HardState{
			Ballot: ha.Ballot{Term: 4}, TermHistory: []ha.TermStart{{Term: 2, Timeline: 1}, {Term: 4, Timeline: 3}},
		}
		all, broken, removed := false, error(nil), []wal.Timeline{}
		s := &superseded{
			hardState: func() ha.HardState { return hardState }, allStream: func() bool { return all },
			log: slog.New(slog.DiscardHandler), forget: func(current wal.Timeline) (int, error) {
				removed = append(removed, current)
				return 1, broken
			},
		}
		check := func(when string, want ...wal.Timeline) {
			t.Helper()
			if err := s.remove(); !errors.Is(err, broken) {
				t.Errorf("%s: %v", when, err)
			}
			if !slices.Equal(removed, want) {
				t.Errorf("%s: removed for the timelines %v, want %v", when, removed, want)
			}
		}
		check("one is missing")
		time.Sleep(time.Minute)
		check("one is missing for long")
		all = true
		check("all have just come")
		time.Sleep(togetherLimit - time.Millisecond)
		check("all are there for a while")
		time.Sleep(time.Millisecond)
		broken = errors.New("input/output error")
		check("it does not work", 3)
		broken = nil
		check("it works", 3, 3)
		time.Sleep(time.Minute)
		check("it was done", 3, 3)
		hardState.Ballot.Term = 5
		check("another term", 3, 3)
		check("all are there in it", 3, 3)
		time.Sleep(time.Minute)
		check("its beginning is not known", 3, 3)
		hardState.TermHistory = append(hardState.TermHistory, ha.TermStart{Term: 5})
		check("its timeline is not known", 3, 3)
		hardState.TermHistory[2].Timeline = 4
		check("now it is", 3, 3, 4)
	})
}

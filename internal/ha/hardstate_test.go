package ha

import (
	"testing"

	"toban.dev/internal/wal"
)

// termHistoryOf is the term history of terms that begin at these places, each on a timeline of its own.
func termHistoryOf(starts ...TermStart) []TermStart {
	for i := range starts {
		starts[i].Timeline = wal.Timeline(i + 1)
	}
	return starts
}

func TestPosition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		history []TermStart
		end     wal.LSN
		term    uint64
	}{
		"no WAL is of no term":  {nil, 0, 0},
		"WAL of the first term": {termHistoryOf(TermStart{Term: 1}), 10, 1},
		"what ends where a term begins is of the one before": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 10}), 10, 1,
		},
		"what goes on is of the later": {termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 10}), 11, 3},
		"a term that was never received counts for nothing": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 20}, TermStart{Term: 4, LSN: 10}), 15, 4,
		},
		"also when the later one has passed it": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 20}, TermStart{Term: 4, LSN: 10}), 25, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if p := (HardState{TermHistory: c.history}).Position(c.end); p != (Position{c.term, c.end}) {
				t.Errorf("it is %v", p)
			}
		})
	}
}

func TestPositionsAreOrderedByTermFirst(t *testing.T) {
	t.Parallel()
	ordered := []Position{{}, {1, 5}, {1, 9}, {2, 3}, {2, 9}}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.Before(b) != (i < j) {
				t.Errorf("%v before %v: %v", a, b, a.Before(b))
			}
		}
	}
}

func TestJoins(t *testing.T) {
	t.Parallel()
	first := termHistoryOf(TermStart{Term: 1})
	third := termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 20})
	fourth := termHistoryOf(TermStart{Term: 1}, TermStart{Term: 4, LSN: 10})
	// It took over the term history of term 3, and was elected before it received any of its WAL.
	hasty := termHistoryOf(TermStart{Term: 1}, TermStart{Term: 3, LSN: 20}, TermStart{Term: 4, LSN: 10})
	for name, c := range map[string]struct {
		mine    []TermStart
		end     wal.LSN
		leaders []TermStart
		joins   bool
	}{
		"no WAL joins anybody":                          {nil, 0, third, true},
		"the same term history joins":                   {third, 30, third, true},
		"the leader of a later term is joined":          {first, 20, third, true},
		"not with more than it had when its term began": {first, 21, third, false},
		"the leader of an earlier term is joined":       {third, 20, first, true},
		"not with WAL that it never had":                {third, 21, first, false},
		"two term histories that parted later":          {third, 10, fourth, true},
		"two that parted before":                        {third, 11, fourth, false},
		"another first term is another history": {
			termHistoryOf(TermStart{Term: 2}), 0, first, false,
		},
		"a leader's term may begin before one it took over and never received": {first, 11, hasty, false},
		"until there it can be joined":                                         {first, 10, hasty, true},
		"the same of one's own WAL":                                            {hasty, 15, third, false},
		"and of one that has neither": {
			hasty, 15, termHistoryOf(TermStart{Term: 1}, TermStart{Term: 5, LSN: 15}), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if joins := CanFollow(c.mine, c.end, c.leaders); joins != c.joins {
				t.Errorf("joins: %v", joins)
			}
		})
	}
}

func TestRewindable(t *testing.T) {
	t.Parallel()
	first := termHistoryOf(TermStart{Term: 1})
	for name, c := range map[string]struct {
		mine, leaders []TermStart
		rewindable    bool
	}{
		"a leader on a timeline of its own": {
			first, termHistoryOf(TermStart{Term: 1}, TermStart{Term: 2, LSN: 10}), true,
		},
		"two that parted, on timelines of their own": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 2, LSN: 10}), []TermStart{{1, 0, 1}, {3, 8, 3}}, true,
		},
		"two that parted, and chose the same number": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 2, LSN: 10}), []TermStart{{1, 0, 1}, {3, 8, 2}}, false,
		},
		"two that parted, and the number of its own is not known": {
			[]TermStart{{1, 0, 1}, {2, 10, 0}}, []TermStart{{1, 0, 1}, {3, 8, 2}}, false,
		},
		"two that parted, and the number of the leader's is not known": {
			[]TermStart{{1, 0, 1}, {2, 10, 2}}, []TermStart{{1, 0, 1}, {3, 8, 0}, {4, 9, 3}}, false,
		},
		"what has not parted can't be told apart":   {first, first, false},
		"another history has nothing to go back to": {termHistoryOf(TermStart{Term: 2}), first, false},
		"nothing known of the own WAL":              {nil, first, false},
		"WAL that the leader of an earlier term never had": {
			termHistoryOf(TermStart{Term: 1}, TermStart{Term: 2, LSN: 10}), first, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rewindable := Rewindable(c.mine, c.leaders); rewindable != c.rewindable {
				t.Errorf("rewindable: %v", rewindable)
			}
		})
	}
}

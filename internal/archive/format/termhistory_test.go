package format

import (
	"slices"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// A timeline that begins where a segment ends is not that of the segment, and one that was not continued is of none.
func TestTheTimelineOfASegment(t *testing.T) {
	history := []ha.TermStart{
		{Term: 1, Timeline: 1}, {Term: 2, Timeline: 2, LSN: 3 * wal.SegmentSize},
		{Term: 3, Timeline: 3, LSN: 4*wal.SegmentSize + 8}, {Term: 4, Timeline: 4, LSN: 4*wal.SegmentSize + 8},
	}
	for number, want := range map[uint64]wal.Timeline{0: 1, 2: 1, 3: 2, 4: 4, 5: 4} {
		if got := TimelineAt(history, number); got != want {
			t.Errorf("segment %d is of timeline %d, want %d", number, got, want)
		}
	}
}

// Where a term history is cut off it keeps all terms that begin before the place: those, too, that a later one has cut
// off. Who has no WAL there, because nobody before the place has cut it off, is left out.
func TestATermHistoryIsCutOffWhereAnotherBegins(t *testing.T) {
	history := []ha.TermStart{{Term: 1}, {Term: 2, LSN: 50}, {Term: 3, LSN: 40}, {Term: 4, LSN: 70}, {Term: 5, LSN: 60}}
	for lsn, want := range map[wal.LSN]struct{ terms, withWAL []uint64 }{
		0:  {nil, nil},
		1:  {[]uint64{1}, []uint64{1}},
		40: {[]uint64{1}, []uint64{1}},
		41: {[]uint64{1, 2, 3}, []uint64{1, 3}},
		60: {[]uint64{1, 2, 3}, []uint64{1, 3}},
		61: {[]uint64{1, 2, 3, 4, 5}, []uint64{1, 3, 5}},
		99: {[]uint64{1, 2, 3, 4, 5}, []uint64{1, 3, 5}},
	} {
		terms := func(of []ha.TermStart) (all []uint64) {
			for _, s := range of {
				all = append(all, s.Term)
			}
			return all
		}
		if got := terms(BegunBefore(history, lsn)); !slices.Equal(got, want.terms) {
			t.Errorf("before %s have begun %v, want %v", lsn, got, want.terms)
		}
		if got := terms(UpTo(history, lsn)); !slices.Equal(got, want.withWAL) {
			t.Errorf("up to %s have WAL %v, want %v", lsn, got, want.withWAL)
		}
	}
}

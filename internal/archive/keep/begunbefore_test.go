package keep

import (
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

func inSegment(number int, offset wal.LSN) wal.LSN { return wal.LSN(number*wal.SegmentSize) + offset }

// restoredFrom is an archive of a database that went on with a term history, of terms 1 to 4, until it was restored in
// place to where it goes on with another. Term 3 has archived nothing; the leader of term 4 has done that for it. There
// is a backup of term 3.
func restoredFrom(left, on []ha.TermStart) book.Catalogue {
	c := book.Catalogue{Terms: map[uint64]*book.Term{
		1: {TermHistory: left[:1]}, 3: {TermHistory: left[:3]}, 4: {TermHistory: left}, 1005: {TermHistory: on},
	}}
	for number := 1; number <= 3; number++ {
		addWAL(&c, 1, 1, number, archivetest.Day(1))
		addWAL(&c, 4, 2, number+2, archivetest.Day(2))
		addWAL(&c, 1005, 3, number+5, archivetest.Day(3))
	}
	addWAL(&c, 4, 2, 6, archivetest.Day(2))
	c.Backups = []format.Backup{{ID: "b", Type: format.TypeFull, Term: 3, StartLSN: inSegment(4, 0x28),
		StopLSN:       inSegment(4, 0x100),
		StartTimeline: 2, StopTimeline: 2, Started: archivetest.Day(2), Stopped: archivetest.Day(2)}}
	return c
}

// The leader of term 3 had taken over the term history of that of term 2, but not its WAL, and has begun before it.
// After a restore in place to a moment of term 3, that leads on from the backup, over the WAL that term 4 has archived;
// also where a former version has left term 2 out of the term history, which has no WAL.
func TestARestoreInPlaceHasInCommonWhatItGoesOnFrom(t *testing.T) {
	left := []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 2, LSN: inSegment(3, 0x5000), Timeline: 2},
		{Term: 3, LSN: inSegment(3, 0x4000), Timeline: 2}, {Term: 4, LSN: inSegment(7, 0), Timeline: 3}}
	fork := inSegment(6, 0x100)
	for name, history := range map[string][]ha.TermStart{
		"the terms before the place": format.BegunBefore(left, fork),
		"those that have WAL":        {left[0], left[2]},
	} {
		t.Run(name, func(t *testing.T) {
			on := append(history, ha.TermStart{Term: 1005, LSN: fork, Timeline: 3})
			c := restoredFrom(left, on)
			b := c.Backups[0]
			for _, history := range [][]ha.TermStart{left, on} {
				if to, gap := c.Covered(history, b.StartLSN); !c.In(b, history) || to < fork || gap != nil {
					t.Errorf("along %v: the backup is of it: %v; there is WAL up to %s, %v", history, c.In(b, history),
						to, gap)
				}
			}
			if parent, ok := take.Parent(c, on, 8); !ok || parent.ID != b.ID {
				t.Errorf("the next backup continues %q", parent.ID)
			}
			after := retention{c}.without(Retain(c, Policy{Count: 1, Now: archivetest.Day(20)}).Names)
			if to, gap := after.Covered(on, b.StartLSN); to < inSegment(9, 0) || gap != nil {
				t.Errorf("after retention there is WAL up to %s, %v", to, gap)
			}
		})
	}
}

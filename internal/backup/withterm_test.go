package backup

import (
	"slices"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Earlier releases noted the term that the archive knew when a backup began. Where a database had been restored in
// place a moment before, that was one of the branch that was left, of which the backup is nothing.
func TestTheTermOfABackupIsThatInWhichItEnded(t *testing.T) {
	fork := wal.LSN(3*wal.SegmentSize + 0x2080)
	first := ha.TermStart{Term: 1, Timeline: 1}
	on := func(term uint64, timeline wal.Timeline) *Term {
		return &Term{TermHistory: []ha.TermStart{first, {Term: term, LSN: fork, Timeline: timeline}}}
	}
	backup := func(term uint64, stop wal.LSN, timeline wal.Timeline) Backup {
		return Backup{ID: "b", Term: term, StartLSN: fork - 0x80, StopLSN: stop, StopTimeline: timeline}
	}
	left := &Term{TermHistory: []ha.TermStart{first}}
	alone := map[uint64]*Term{1: left}
	two := map[uint64]*Term{1: left, 1002: on(1002, 2)}
	three := map[uint64]*Term{1: left, 1002: on(1002, 2), 2003: on(2003, 3)}
	same := map[uint64]*Term{1: left, 5: on(5, 2), 6: on(6, 2)}
	for name, c := range map[string]struct {
		terms map[uint64]*Term
		b     Backup
		term  uint64
		in    []uint64 // terms with whose history it begins
	}{
		"it says the branch that was left":    {two, backup(1, fork+9, 2), 1002, []uint64{1002}},
		"and that was left too":               {three, backup(1, fork+9, 2), 1002, []uint64{1002}},
		"from before they parted":             {two, backup(1, fork-9, 1), 1, []uint64{1, 1002}},
		"it is right":                         {two, backup(1002, fork+9, 2), 1002, []uint64{1002}},
		"two leaders had a timeline of it":    {same, backup(1, fork+9, 2), 1, nil},
		"nobody is known to have had it":      {alone, backup(1, fork+9, 2), 1, nil},
		"it does not say on which it ended":   {two, backup(1, fork+9, 0), 1, []uint64{1}},
		"its leader has not written its term": {alone, backup(7, fork+9, 2), 7, nil},
	} {
		t.Run(name, func(t *testing.T) {
			archive := Catalogue{Terms: c.terms}
			b := c.b.WithTerm(archive)
			if b.Term != c.term {
				t.Errorf("it is of term %d, want %d", b.Term, c.term)
			}
			for term, of := range c.terms {
				if got := archive.In(b, of.TermHistory); got != slices.Contains(c.in, term) {
					t.Errorf("it begins what term %d had: %v", term, got)
				}
			}
		})
	}
}

// What an incremental backup is the change from has to be of the same branch, or it is of no use there.
func TestAChainOverTwoBranchesCanNotBeRestored(t *testing.T) {
	fork := wal.LSN(wal.SegmentSize + 0x2080)
	first := ha.TermStart{Term: 1, Timeline: 1}
	left := []ha.TermStart{first}
	on := []ha.TermStart{first, {Term: 1002, LSN: fork, Timeline: 2}}
	c := Catalogue{Terms: map[uint64]*Term{1: {TermHistory: left}, 1002: {TermHistory: on}}, Backups: []Backup{
		{ID: "full", Type: TypeFull, Term: 1, StartLSN: wal.SegmentSize + 0x28, StopLSN: fork + 0x100, StopTimeline: 1},
		{ID: "change", Type: TypeIncremental, Parent: "full", Term: 1002, StartLSN: fork + 0x200, StopLSN: fork + 0x300,
			StopTimeline: 2},
	}}
	for _, of := range c.Terms {
		last := of.TermHistory[len(of.TermHistory)-1]
		segment := wal.SegmentAt(last.Timeline, fork, wal.SegmentSize)
		of.WAL = []WAL{{Piece: Piece{Segment: segment, To: wal.SegmentSize}}}
	}
	for _, w := range c.windows(on) {
		t.Errorf("the branch in use has %+v", w.Backups)
	}
	if all := c.windows(left); len(all) != 1 || len(all[0].Backups) != 1 || all[0].Backups[0].ID != "full" {
		t.Errorf("the branch that was left has %+v", all)
	}
}

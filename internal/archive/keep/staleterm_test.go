package keep

import (
	"slices"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// A backup says the term that the archive knew when it began. Where a database had been restored in place a moment
// before, that was one of the branch that was left, of which the backup is nothing.
func TestABackupWithATermOfTheBranchThatWasLeftIsOfTheOther(t *testing.T) {
	left := []ha.TermStart{{Term: 1, Timeline: 1}}
	fork := wal.LSN(3*wal.SegmentSize + 0x2080)
	on := []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 1002, LSN: fork, Timeline: 2}}
	c := book.Catalogue{Terms: map[uint64]*book.Term{1: {TermHistory: left}, 1002: {TermHistory: on}}}
	addWAL(&c, 1002, 2, 3, archivetest.Day(1))
	b := format.Backup{ID: "b", Term: 1, StartLSN: fork + 0x100, StopLSN: fork + 0x200, StartTimeline: 2,
		StopTimeline: 2}
	if c.In(b, left) || !c.In(b, on) {
		t.Errorf("it is of the branch that was left: %v, of the other: %v", c.In(b, left), c.In(b, on))
	}
	b.StopLSN, b.StartTimeline, b.StopTimeline = fork-0x100, 1, 1
	if !c.In(b, left) || !c.In(b, on) {
		t.Errorf("one from before they parted is of the one: %v, of the other: %v", c.In(b, left), c.In(b, on))
	}
}

// twiceTheSameTimeline is an archive of a database that was restored in place twice, to the same moment of its first
// branch. Both times timeline 2 began. The one backup is of the second branch, and says the term of the first, because
// the archive did not know of the second one's leader yet.
func twiceTheSameTimeline() book.Catalogue {
	first := ha.TermStart{Term: 1, Timeline: 1}
	fork := wal.LSN(3*wal.SegmentSize + 0x2080)
	c := book.Catalogue{Terms: map[uint64]*book.Term{
		1:    {TermHistory: []ha.TermStart{first}},
		1002: {TermHistory: []ha.TermStart{first, {Term: 1002, LSN: fork, Timeline: 2}}},
		2003: {TermHistory: []ha.TermStart{first, {Term: 2003, LSN: fork, Timeline: 2}}},
	}}
	for number := 1; number <= 6; number++ {
		addWAL(&c, 1, 1, number, archivetest.Day(1))
		if number >= 3 {
			addWAL(&c, 1002, 2, number, archivetest.Day(2))
			addWAL(&c, 2003, 2, number, archivetest.Day(3))
		}
	}
	at := wal.LSN(4 * wal.SegmentSize)
	c.Backups = []format.Backup{{ID: "stale", Type: format.TypeFull, Term: 1, StartLSN: at + 0x28, StopLSN: at + 0x100,
		StartTimeline: 2, StopTimeline: 2, Started: archivetest.Day(2), Stopped: archivetest.Day(2)}}
	return c
}

// Neither a backup nor a snapshot of a volume, which a restore has among the backups, is brought along the WAL of
// another branch by the number of its timeline. What that branch has there is other data.
func TestABackupWithAStaleTermIsOfTheFirstLeaderSince(t *testing.T) {
	c := twiceTheSameTimeline()
	stale := c.Backups[0]
	for term, of := range c.Terms {
		if is := c.In(stale, of.TermHistory); is != (term == 1002) {
			t.Errorf("it is of what term %d had: %v", term, is)
		}
	}
	for _, w := range []book.Wanted{{Backup: stale.ID},
		{Backup: stale.ID, Target: book.Target{LSN: stale.StopLSN + 0x100}}} {
		choice, err := c.Choose(w)
		if err != nil || !slices.Equal(choice.TermHistory, c.Terms[1002].TermHistory) {
			t.Errorf("restore %s: along %+v, %v", w, choice.TermHistory, err)
		}
	}
	if parent, ok := take.Parent(c, c.Terms[2003].TermHistory, 8); ok {
		t.Errorf("the branch in use continues %s", parent.ID)
	}
}

// Retention keeps the term that is named and the one that is meant: without either of them nobody would know any more
// whose the backup is.
func TestRetentionKeepsWhatTellsOfAStaleTerm(t *testing.T) {
	c := twiceTheSameTimeline()
	for term := range c.Terms {
		c.Terms[term].Note = bucket.Object{Name: format.TermFolder(term) + format.FileLineage,
			Modified: archivetest.Day(1)}
	}
	stale := c.Backups[0]
	addBackup(&c, format.Backup{ID: "newer", Term: 2003}, 5, archivetest.Day(4))
	for range 3 {
		d := Retain(c, Policy{Count: 2, Now: archivetest.Day(20)})
		c = retention{c}.without(d.Names).Catalogue
	}
	if all := c.Terms[1].WAL; len(all) > 0 {
		t.Errorf("the WAL of the first branch is still there: %v", all)
	}
	choice, err := c.Choose(book.Wanted{Backup: stale.ID})
	if err != nil || !slices.Equal(choice.TermHistory, c.Terms[1002].TermHistory) {
		t.Errorf("along %+v, %v", choice.TermHistory, err)
	}
}

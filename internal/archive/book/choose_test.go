package book

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// hour is one of a day.
// chooseFrom is an archive of two terms: the second continues the first from 0/5000100 on. WAL of segments 3 to 6 was
// written at 4 to 7 o'clock, backups ended at 3 (b3) and 5 (b5); what the first term wrote beyond was not continued.
func chooseFrom() Catalogue {
	c := Catalogue{Terms: map[uint64]*Term{
		1: {TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}}},
		2: {TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 2, LSN: 0x5000100, Timeline: 2}}},
	}}
	add := func(term uint64, timeline wal.Timeline, number uint64) {
		s := format.SegmentOf(timeline, number)
		c.Terms[term].WAL = append(c.Terms[term].WAL,
			WAL{format.Piece{Segment: s, From: 0, To: wal.SegmentSize},
				bucket.Object{Name: s.String(), Modified: archivetest.Hour(int(number) + 1)}})
	}
	for number := uint64(3); number < 6; number++ {
		add(1, 1, number)
	}
	add(2, 2, 5)
	add(2, 2, 6)
	for _, at := range []int{3, 5} {
		lsn := wal.LSN(at) * wal.SegmentSize
		c.Backups = append(c.Backups, format.Backup{
			ID: fmt.Sprintf("b%d", at), Type: format.TypeFull, Term: 1, StartLSN: lsn + 0x28, StopLSN: lsn + 0x100,
			Started: archivetest.Hour(at), Stopped: archivetest.Hour(at),
		})
	}
	return c
}

func TestWhatIsChosenToRestoreFrom(t *testing.T) {
	for name, c := range map[string]struct {
		want   Wanted
		backup string
		to     wal.LSN
	}{
		"the end":                                {Wanted{}, "b5", 0x7000000},
		"a time between the backups":             {Wanted{Target: Target{Time: archivetest.Hour(4)}}, "b3", 0x7000000},
		"a time after the last WAL":              {Wanted{Target: Target{Time: archivetest.Hour(20)}}, "b5", 0x7000000},
		"now":                                    {Wanted{Target: Target{Time: archivetest.Hour(22)}}, "b5", 0x7000000},
		"the future":                             {Wanted{Target: Target{Time: archivetest.Hour(23)}}, "", 0},
		"a time before the first backup":         {Wanted{Target: Target{Time: archivetest.Hour(2)}}, "", 0},
		"an LSN before the second backup's stop": {Wanted{Target: Target{LSN: 0x50000F0}}, "b3", 0x7000000},
		"an LSN beyond the end":                  {Wanted{Target: Target{LSN: 0x7000001}}, "", 0},
		"a transaction":                          {Wanted{Target: Target{XID: "7"}}, "b3", 0x7000000},
		"a named point with a backup":            {Wanted{Target: Target{Name: "x"}, Backup: "b5"}, "b5", 0x7000000},
		"a backup as it was": {
			Wanted{Target: Target{Immediate: true}, Backup: "b3"}, "b3", 0x3000100,
		},
		"a backup that is too late":  {Wanted{Target: Target{Time: archivetest.Hour(4)}, Backup: "b5"}, "", 0},
		"a backup that is not there": {Wanted{Target: Target{Immediate: true}, Backup: "b9"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Now = archivetest.Hour(22)
			got, err := chooseFrom().Choose(c.want)
			if c.backup == "" {
				if !errors.Is(err, ErrOutside) ||
					!strings.Contains(err.Error(), "b9") && !strings.Contains(err.Error(), "2026-11-20T03:00:00Z") {
					t.Errorf("chose %s, %v", got.Backup.ID, err)
				}
				return
			}
			if err != nil || got.Backup.ID != c.backup || got.To != c.to {
				t.Errorf("chose %s to %s, %v; want %s to %s", got.Backup.ID, got.To, err, c.backup, c.to)
			}
		})
	}
	// With a gap at the end nobody knows what was written after it.
	gap := chooseFrom()
	gap.Terms[2].WAL[1].Piece.Segment.Number = 8
	late := Wanted{Target: Target{Time: archivetest.Hour(20)}, Now: archivetest.Hour(22)}
	if got, err := gap.Choose(late); err == nil {
		t.Errorf("chose %s beyond a gap", got.Backup.ID)
	}
}

// restoredInPlace is an archive whose database was restored in place at 21 o'clock, to 5 o'clock (0/5000100). The first
// branch has WAL of 4 to 20 o'clock and backups of 3 and 15 o'clock, the second one WAL from 21:00:20 on, and the
// backup that was taken then.
func restoredInPlace() Catalogue {
	left := []ha.TermStart{{Term: 1, Timeline: 1}}
	next := append(slices.Clone(left), ha.TermStart{Term: 1002, LSN: 0x5000100, Timeline: 2})
	c := Catalogue{Terms: map[uint64]*Term{1: {TermHistory: left}, 1002: {
		TermHistory: next, Histories: map[wal.Timeline]bucket.Object{2: {Name: "wal/000003EA/00000002.history.zst"}},
	}}}
	for n := 3; n < 20; n++ {
		writeTo(&c, 1, 1, n, archivetest.Hour(n+1))
	}
	for n := 5; n < 14; n++ {
		writeTo(&c, 1002, 2, n, archivetest.Hour(21).Add(time.Duration(n)*time.Minute))
	}
	c.Terms[1002].Note.Modified = archivetest.Hour(21).Add(20 * time.Second)
	backUp(&c, "b3", 1, 3, archivetest.Hour(3))
	backUp(&c, "b15", 1, 15, archivetest.Hour(15))
	backUp(&c, "new", 1002, 8, archivetest.Hour(21).Add(10*time.Minute))
	return c
}

func TestTheBranchThatWasLeftCanBeRestored(t *testing.T) {
	now := archivetest.Hour(22)
	for name, c := range map[string]struct {
		want   Wanted
		branch uint64
		backup string
		to     wal.LSN
		error  string
	}{
		"a time before the place where they part": {
			Wanted{Target: Target{Time: archivetest.Hour(4)}}, 1, "b3", 0x14000000, "",
		},
		"a time of the branch that was left": {
			Wanted{Target: Target{Time: archivetest.Hour(14)}}, 1, "b3", 0x14000000, "",
		},
		"a later one": {
			Wanted{Target: Target{Time: archivetest.Hour(16)}}, 1, "b15", 0x14000000, "",
		},
		"with a backup": {
			Wanted{Target: Target{Time: archivetest.Hour(16)}, Backup: "b3"}, 1, "b3", 0x14000000, "",
		},
		"a time of the newer one": {
			Wanted{Target: Target{Time: archivetest.Hour(21).Add(time.Minute)}}, 1002, "b3", 0xE000000, "",
		},
		"now": {Wanted{Target: Target{Time: now}}, 1002, "new", 0xE000000, ""},
		"a time between them": {
			Wanted{Target: Target{Time: archivetest.Hour(21)}}, 0, "", 0, "name it without a moment",
		},
		"one that is named, before": {
			Wanted{Target: Target{Time: archivetest.Hour(4)}, Branch: 1002}, 1002, "b3", 0xE000000, "",
		},
		"a time after the end of one that is named": {
			Wanted{Target: Target{Time: archivetest.Hour(21)}, Branch: 1}, 0, "", 0, "branch 1 from 0/3000100",
		},
		"an LSN before they part": {Wanted{Target: Target{LSN: 0x5000100}}, 1002, "b3", 0xE000000, ""},
		"an LSN of both":          {Wanted{Target: Target{LSN: 0xA000000}}, 0, "", 0, "--branch"},
		"an LSN of both with b3":  {Wanted{Target: Target{LSN: 0xA000000}, Backup: "b3"}, 0, "", 0, "--branch"},
		"an LSN of both with new": {
			Wanted{Target: Target{LSN: 0xA000000}, Backup: "new"}, 1002, "new", 0xE000000, "",
		},
		"an LSN of the one named": {Wanted{Target: Target{LSN: 0xA000000}, Branch: 1}, 1, "b3", 0x14000000, ""},
		"an LSN of the other named": {
			Wanted{Target: Target{LSN: 0xA000000}, Branch: 1002}, 1002, "new", 0xE000000, "",
		},
		"an LSN of one alone":      {Wanted{Target: Target{LSN: 0x12000000}}, 1, "b15", 0x14000000, ""},
		"the end":                  {Wanted{}, 1002, "new", 0xE000000, ""},
		"the end of what was left": {Wanted{Branch: 1}, 1, "b15", 0x14000000, ""},
		"a backup of what was left": {
			Wanted{Target: Target{Immediate: true}, Backup: "b15"}, 1, "b15", 0xF000100, "",
		},
		"to verify it": {Wanted{Backup: "b15"}, 1, "b15", 0x14000000, ""},
		"a transaction is looked for on the newest": {
			Wanted{Target: Target{XID: "7"}}, 1002, "b3", 0xE000000, "",
		},
		"or where it is said to be": {Wanted{Target: Target{XID: "7"}, Branch: 1}, 1, "b3", 0x14000000, ""},
		"a branch that is none": {
			Wanted{Branch: 7}, 0, "", 0, "no such branch, but branch 1002 from 0/5000100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := restoredInPlace()
			c.want.Now = now
			got, err := archive.Choose(c.want)
			if c.error != "" {
				if err == nil || !strings.Contains(err.Error(), c.error) {
					t.Errorf("it goes along branch %d: %v", got.Branch, err)
				}
				return
			}
			if err != nil || got.Branch != c.branch || got.Backup.ID != c.backup || got.To != c.to {
				t.Fatalf("it goes along branch %d from %s to %s: %v", got.Branch, got.Backup.ID, got.To, err)
			}
			plan, err := archive.PlanWAL(got.TermHistory, got.Backup.StartLSN, got.To)
			if want := map[uint64]wal.Timeline{1: 1, 1002: 2}[c.branch]; err != nil || plan.Timeline != want {
				t.Errorf("it recovers along timeline %d: %v", plan.Timeline, err)
			}
		})
	}
}

func TestTheWordsOfAMomentOnSeveralBranches(t *testing.T) {
	_, err := restoredInPlace().Choose(Wanted{Target: Target{LSN: 0xA000000}, Now: archivetest.Hour(22)})
	want := "restore to LSN 0/A000000: it is on several branches, with other data on each. " +
		"Name the one that is meant, with branch in the target (--branch of kubectl toban restore): " +
		"branch 1002 from 0/5000100 (2026-11-20T21:00:20Z) to 0/E000000 (2026-11-20T21:13:00Z); " +
		"branch 1 from 0/3000100 (2026-11-20T03:00:00Z) to 0/14000000 (2026-11-20T20:00:00Z)"
	if !errors.Is(err, ErrSeveral) || err.Error() != want {
		t.Errorf("it says\n%v", err)
	}
	// A copy of an archive may say that all of it was written today: the branch was left all the same.
	copied := restoredInPlace()
	for _, term := range copied.Terms {
		for i := range term.WAL {
			term.WAL[i].Object.Modified = archivetest.Hour(23)
		}
	}
	c, err := copied.Choose(Wanted{Target: Target{Time: archivetest.Hour(22)}, Now: archivetest.Hour(23)})
	if err != nil || c.Branch != 1002 {
		t.Errorf("where both seem to have a time it goes along branch %d: %v", c.Branch, err)
	}
}

// Failovers make no branch, a restore in place does, also where its own leaders' word is lost.
func TestWhatABranchIs(t *testing.T) {
	starts := func(terms ...uint64) (history []ha.TermStart) {
		for i, term := range terms {
			history = append(history,
				ha.TermStart{Term: term, LSN: wal.LSN(i) * 3 * wal.SegmentSize, Timeline: wal.Timeline(i + 1)})
		}
		return history
	}
	for name, c := range map[string]struct {
		histories [][]ha.TermStart
		want      []uint64
	}{
		"failovers": {[][]ha.TermStart{starts(1), starts(1, 2), starts(1, 2, 9)}, []uint64{1}},
		"a restore in place": {
			[][]ha.TermStart{starts(1), starts(1, 1002), starts(1, 1002, 1003)}, []uint64{1002, 1},
		},
		"one of another branch": {
			[][]ha.TermStart{starts(1), starts(1, 1002), starts(1, 2003)}, []uint64{2003, 1002, 1},
		},
		"one whose own word is missing": {[][]ha.TermStart{nil, starts(1, 1002, 2004)}, []uint64{2004, 1002, 1}},
		"an archive that began late":    {[][]ha.TermStart{starts(40, 41)}, []uint64{40}},
	} {
		t.Run(name, func(t *testing.T) {
			archive := Catalogue{Terms: map[uint64]*Term{}}
			for _, history := range c.histories {
				if history == nil {
					continue
				}
				own := history[len(history)-1]
				archive.Terms[own.Term] = &Term{TermHistory: history}
				writeTo(&archive, own.Term, own.Timeline, int(own.LSN/wal.SegmentSize), archivetest.Hour(3))
			}
			var got []uint64
			for _, b := range archive.Branches() {
				got = append(got, b.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the branches are %v, expected %v", got, c.want)
			}
		})
	}
}

// What a leader wrote that its successor did not have is on no branch, and can be had by the number of its term.
func TestATermIsReadAsItsLeaderHadIt(t *testing.T) {
	archive := chooseFrom()
	s := format.SegmentOf(1, 9)
	for n := uint64(6); n < 9; n++ {
		s.Number = n
		archive.Terms[1].WAL = append(archive.Terms[1].WAL,
			WAL{format.Piece{Segment: s, From: 0, To: wal.SegmentSize},
				bucket.Object{Name: s.String(), Modified: archivetest.Hour(6)}})
	}
	archive.Terms[2].WAL = append(archive.Terms[2].WAL,
		WAL{format.Piece{Segment: format.SegmentOf(2, 7), From: 0, To: wal.SegmentSize},
			bucket.Object{Name: "x", Modified: archivetest.Hour(8)}},
		WAL{format.Piece{Segment: format.SegmentOf(2, 8), From: 0, To: wal.SegmentSize},
			bucket.Object{Name: "y", Modified: archivetest.Hour(9)}})
	lsn := Target{LSN: 0x8000100}
	for branch, want := range map[uint64]int{0: 2, 1: 2, 2: 2} {
		got, err := archive.Choose(Wanted{Target: lsn, Branch: branch, Now: archivetest.Hour(22)})
		if err != nil || len(got.TermHistory) != want {
			t.Errorf("branch %d goes along %v: %v", branch, got.TermHistory, err)
		}
	}
	// The first term is the name of the branch, whose newest leader goes before; another's is the leader's own.
	archive.Terms[3] = &Term{TermHistory: append(slices.Clone(archive.Terms[2].TermHistory),
		ha.TermStart{Term: 3, LSN: 0x6000100, Timeline: 3})}
	writeTo(&archive, 3, 3, 6, archivetest.Hour(10))
	if got, err := archive.Choose(Wanted{Branch: 2, Now: archivetest.Hour(22)}); err != nil || got.To != 0x9000000 {
		t.Errorf("as the leader of term 2 had it: to %s, %v", got.To, err)
	}
	if got, err := archive.Choose(Wanted{Now: archivetest.Hour(22)}); err != nil || got.To != 0x7000000 {
		t.Errorf("as it is: to %s, %v", got.To, err)
	}
}

// An archive that has had more than it has is not the one that was meant, or has lost objects.
func TestAnArchiveThatHasHadMoreIsNotRestored(t *testing.T) {
	archive := restoredInPlace()
	if _, err := archive.Choose(Wanted{AtLeast: 0xE000000, Now: archivetest.Hour(22)}); err != nil {
		t.Errorf("with all that it has had: %v", err)
	}
	_, err := archive.Choose(Wanted{AtLeast: 0xE000001, Now: archivetest.Hour(22)})
	words := "only to 0/E000000, and it has had WAL up to 0/E000001"
	if !errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), words) {
		t.Errorf("with less: %v", err)
	}
}

// Where the branch that is asked for can't be restored, no other takes its place.
func TestNoBranchTakesThePlaceOfAnother(t *testing.T) {
	archive := restoredInPlace()
	archive.Backups = slices.DeleteFunc(archive.Backups, func(b format.Backup) bool { return b.ID != "b15" })
	if got, err := archive.Choose(Wanted{Now: archivetest.Hour(22)}); !errors.Is(err, ErrOutside) ||
		!strings.Contains(err.Error(), "branch 1002 has no backup") {
		t.Errorf("the end is read along branch %d: %v", got.Branch, err)
	}
	if got, err := archive.Choose(Wanted{Branch: 1, Now: archivetest.Hour(22)}); err != nil || got.Backup.ID != "b15" {
		t.Errorf("the end of branch 1 is read from %s: %v", got.Backup.ID, err)
	}
	// The newest has no backup of its own, and a gap where it begins. The other's last WAL came late.
	archive = restoredInPlace()
	archive.Backups = slices.DeleteFunc(archive.Backups, func(b format.Backup) bool { return b.ID == "new" })
	archive.Terms[1002].WAL = archive.Terms[1002].WAL[3:]
	for i := range archive.Terms[1].WAL {
		archive.Terms[1].WAL[i].Object.Modified = archivetest.Hour(23)
	}
	if got, err := archive.Choose(Wanted{Target: Target{Time: archivetest.Hour(22)},
		Now: archivetest.Hour(23)}); !errors.Is(err, ErrOutside) {
		t.Errorf("a time of the newest is read along branch %d: %v", got.Branch, err)
	}
}

// The leader of term 2 archived what that of term 1 had not come to, and that of term 3 did so once more. A restore in
// place to before their starts leaves both out.
func TestWALIsFoundWhereALaterLeaderHasArchivedIt(t *testing.T) {
	first := []ha.TermStart{{Term: 1, Timeline: 1}}
	second := append(slices.Clone(first), ha.TermStart{Term: 2, LSN: 0x5000100, Timeline: 2})
	third := append(slices.Clone(second), ha.TermStart{Term: 3, LSN: 0x6000100, Timeline: 3})
	next := append(slices.Clone(first), ha.TermStart{Term: 1004, LSN: 0x4800000, Timeline: 2})
	archive := Catalogue{Terms: map[uint64]*Term{2: {TermHistory: second}, 3: {TermHistory: third}, 1004: {
		TermHistory: next, Histories: map[wal.Timeline]bucket.Object{2: {Name: "wal/000003EC/00000002.history.zst"}},
	}}}
	for n := 3; n < 5; n++ {
		writeTo(&archive, 2, 1, n, archivetest.Hour(n+1))
		writeTo(&archive, 3, 1, n, archivetest.Hour(9))
	}
	writeTo(&archive, 2, 2, 5, archivetest.Hour(6))
	writeTo(&archive, 3, 3, 6, archivetest.Hour(10))
	writeTo(&archive, 1004, 2, 4, archivetest.Hour(21))
	writeTo(&archive, 1004, 2, 5, archivetest.Hour(21))
	backUp(&archive, "b3", 1, 3, archivetest.Hour(3))
	for range 20 { // whatever the order of a map
		got, err := archive.Choose(Wanted{Now: archivetest.Hour(22)})
		if err != nil || got.Branch != 1004 || got.To != 0x6000000 {
			t.Fatalf("the end is read along branch %d to %s: %v", got.Branch, got.To, err)
		}
		plan, err := archive.PlanWAL(got.TermHistory, got.Backup.StartLSN, got.To)
		if err != nil || plan.Segments[0].Objects[0].Name != "wal/00000002/000000010000000000000003.zst" ||
			plan.Segments[1].Objects[0].Name != "wal/000003EC/000000020000000000000004.zst" {
			t.Fatalf("the WAL is read from %+v: %v", plan.Segments, err)
		}
	}
	// What they wrote after the place of the restore is not taken.
	archive.Terms[1004].WAL = nil
	writeTo(&archive, 1004, 2, 5, archivetest.Hour(21))
	if to, missing := archive.Covered(next, 0x3000028); to != 0x4800000 || missing == nil {
		t.Errorf("it is covered to %s, what is missing is %v", to, missing)
	}
}

// Whoever asks for the newest must not get what is older in its place.
func TestATermThatCantBeUnderstoodIsNotPassedOver(t *testing.T) {
	archive := restoredInPlace()
	spoilTerm(&archive, 1002)
	archive.Terms[1002].Note.Modified = archivetest.Hour(21)
	for name, c := range map[string]struct {
		want  Wanted
		error string
	}{
		"the end": {Wanted{}, "wal/000003EA/lineage.json can't be understood"},
		"a time since": {Wanted{Target: Target{Time: archivetest.Hour(21)}},
			"wal/000003EA/lineage.json can't be understood"},
		"a time before":    {Wanted{Target: Target{Time: archivetest.Hour(14)}}, ""},
		"a branch":         {Wanted{Branch: 1}, ""},
		"a backup as such": {Wanted{Backup: "b15", Target: Target{Immediate: true}}, ""},
	} {
		c.want.Now = archivetest.Hour(22)
		got, err := archive.Choose(c.want)
		if c.error == "" && (err != nil || got.Branch != 1) ||
			c.error != "" && (!errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), c.error)) {
			t.Errorf("%s is read along branch %d: %v", name, got.Branch, err)
		}
	}
}

// A note that can't be understood matters only where its leader may have written what is wanted: not one of an earlier
// term, nor one whose term history is known from elsewhere.
func TestATermThatCantBeUnderstoodAndIsNotTheNewestIsNoObstacle(t *testing.T) {
	archive := restoredInPlace()
	archive.Terms[1].Note.Modified = archivetest.Hour(21)
	archive.Unread = append(archive.Unread, Unread{Name: "wal/00000001/lineage.json", Term: 1, Problem: "spoilt"})
	if got, err := archive.Choose(Wanted{Now: archivetest.Hour(22)}); err != nil || got.Branch != 1002 {
		t.Errorf("the end is read along branch %d: %v", got.Branch, err)
	}
	archive.Unread[0].Term = 1003 // of which nothing else is known
	if got, err := archive.Choose(Wanted{Now: archivetest.Hour(22)}); err != nil || got.Branch != 1002 {
		t.Errorf("the end is read along branch %d: %v", got.Branch, err)
	}
}

// writeTo adds the WAL of a segment.
func writeTo(c *Catalogue, term uint64, timeline wal.Timeline, number int, at time.Time) {
	s := format.SegmentOf(timeline, uint64(number))
	c.Terms[term].WAL = append(c.Terms[term].WAL,
		WAL{format.Piece{Segment: s, From: 0, To: wal.SegmentSize},
			bucket.Object{Name: format.TermFolder(term) + s.String() + ".zst", Modified: at}})
}

// backUp adds a backup that begins and ends in a segment.
func backUp(c *Catalogue, id string, term uint64, number int, at time.Time) {
	lsn := wal.LSN(number) * wal.SegmentSize
	c.Backups = append(c.Backups, format.Backup{
		ID: id, Type: format.TypeFull, Term: term, StartLSN: lsn + 0x28, StopLSN: lsn + 0x100,
		Started: at, Stopped: at,
	})
	slices.SortFunc(c.Backups, func(a, b format.Backup) int { return a.Stopped.Compare(b.Stopped) })
}

// spoilTerm has the term history of a term be cut off.
func spoilTerm(c *Catalogue, number uint64) {
	name := format.TermFolder(number) + format.FileLineage
	c.Terms[number].TermHistory, c.Terms[number].Note = nil, bucket.Object{Name: name}
	c.Unread = []Unread{{Name: name, Problem: "it is cut off", Term: number}}
	c.infer()
}

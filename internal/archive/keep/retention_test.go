package keep

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// day is one of a month, at the hour of the backup.
// aMonth is an archive of one term. On each day it gets one segment of WAL with the number of the day, and on some days
// a backup, which begins and ends in that segment.
func aMonth(today int, backups ...int) book.Catalogue {
	c := book.Catalogue{
		Terms:    map[uint64]*book.Term{1: {TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}}}},
		Contents: map[string][]bucket.Object{},
	}
	for d := 1; d <= today; d++ {
		addWAL(&c, 1, 1, d, archivetest.Day(d))
	}
	for _, d := range backups {
		addBackup(&c, format.Backup{ID: fmt.Sprintf("b%d", d), Term: 1}, d, archivetest.Day(d))
	}
	return c
}

func addWAL(c *book.Catalogue, term uint64, timeline wal.Timeline, number int, at time.Time) {
	s := format.SegmentOf(timeline, uint64(number))
	c.Terms[term].WAL = append(c.Terms[term].WAL,
		book.WAL{Piece: format.Piece{Segment: s, From: 0, To: wal.SegmentSize},
			Object: bucket.Object{Name: format.TermFolder(term) + s.String() + ".zst", Modified: at}})
}

// addBackup adds a backup that begins and ends in a segment.
func addBackup(c *book.Catalogue, b format.Backup, number int, at time.Time) {
	lsn := wal.LSN(number) * wal.SegmentSize
	b.Type, b.StartLSN, b.StopLSN, b.Started, b.Stopped = format.TypeFull, lsn+0x28, lsn+0x100, at, at
	c.Backups = append(c.Backups, b)
	slices.SortFunc(c.Backups, func(a, b format.Backup) int { return a.Stopped.Compare(b.Stopped) })
}

// loseWAL takes the segment of a day out of the archive.
func loseWAL(c *book.Catalogue, days ...int) {
	for _, t := range c.Terms {
		t.WAL = slices.DeleteFunc(t.WAL, func(w book.WAL) bool { return slices.Contains(days, int(w.Segment.Number)) })
	}
}

// losePiece says that a backup has an object, which is not there.
func losePiece(c *book.Catalogue, id string) {
	for i := range c.Backups {
		if c.Backups[i].ID == id {
			c.Backups[i].Pieces = []format.Object{{Name: "base.tar.00000.zst", Size: 1}}
		}
	}
}

// gone are the backups that are deleted, and from where to where WAL is, in days.
func gone(d Deletions) (backups []string, wal []string) {
	for _, name := range d.Names {
		if id, ok := strings.CutPrefix(name, format.FolderBase); ok {
			backups = append(backups, strings.TrimSuffix(id, "/"+format.FileBackup))
			continue
		}
		_, rest, _ := format.ParseTerm(name)
		plain, _, _ := format.PlainName(rest)
		if p, ok := format.ParsePiece(plain); ok {
			wal = append(wal, fmt.Sprint(p.Segment.Number))
		}
	}
	slices.Sort(backups)
	return backups, wal
}

// byRules is what the rules alone remove, however much that is. It may not break a promise.
func byRules(t *testing.T, c book.Catalogue, p Policy) Deletions {
	t.Helper()
	r := retention{c}
	d, kept := r.retain(p)
	if broken := r.breaks(p, r.without(d.Names), kept); broken != "" {
		t.Errorf("it breaks a promise: %s", broken)
	}
	return d
}

func TestWhatRetentionRemoves(t *testing.T) {
	weekly := []int{1, 8, 15, 17}
	for name, c := range map[string]struct {
		catalogue    book.Catalogue
		change       func(c *book.Catalogue)
		count, days  int
		backups, wal string
	}{
		"no more than is asked for are kept, nor WAL from before them": {
			aMonth(10, 2, 4, 6, 8, 10), nil, 3, 0, "b2 b4", "1 2 3 4 5"},
		"days keep more than a count": {
			aMonth(10, 2, 4, 6, 8, 10), nil, 1, 3, "b2 b4", "1 2 3 4 5"},
		"a backup after a gap evicts no more than one": {
			aMonth(26, 17, 18, 19, 20, 21, 22, 23, 26), func(c *book.Catalogue) { loseWAL(c, 24, 25) }, 7, 0,
			"b17", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"},
		"a backup after two gaps evicts no more than one": {
			aMonth(26, 17, 18, 19, 20, 22, 23, 24, 26), func(c *book.Catalogue) { loseWAL(c, 21, 25) }, 7, 0,
			"b17", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"},
		"a lost object of WAL removes no backup": {
			aMonth(26, 17, 18, 19, 20, 22, 24, 26), func(c *book.Catalogue) { loseWAL(c, 25) }, 7, 0,
			"", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"},
		"days hold before a gap too": {
			aMonth(17, weekly...), func(c *book.Catalogue) { loseWAL(c, 16) }, 1, 12, "", ""},
		"a window that ended before the promised days is not of them": {
			aMonth(28, 1, 8, 15, 28), func(c *book.Catalogue) { loseWAL(c, 16) }, 1, 10, "b1 b15 b8",
			"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27"},
		"a backup that has lost a piece does not count, and stays": {
			aMonth(10, 2, 4, 6, 8, 10), func(c *book.Catalogue) { losePiece(c, "b10") }, 3, 0, "b2", "1 2 3"},
		"nor does one that has lost WAL of its own": {
			aMonth(10, 2, 4, 6, 8, 10), func(c *book.Catalogue) { loseWAL(c, 8) }, 3, 0, "b2", "1 2 3"},
		"a broken one goes when it would have": {
			aMonth(10, 2, 4, 6, 8, 10), func(c *book.Catalogue) { losePiece(c, "b4") }, 3, 0, "b2 b4", "1 2 3 4 5"},
		"where nothing can be restored nothing goes": {
			aMonth(10, 2, 4, 6),
			func(c *book.Catalogue) { losePiece(c, "b2"); losePiece(c, "b4"); losePiece(c, "b6") }, 1, 1, "", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change != nil {
				c.change(&c.catalogue)
			}
			now := c.catalogue.Backups[len(c.catalogue.Backups)-1].Stopped.Add(2 * time.Hour)
			d := byRules(t, c.catalogue, Policy{Count: c.count, Age: time.Duration(c.days) * 24 * time.Hour, Now: now})
			backups, wal := gone(d)
			if strings.Join(backups, " ") != c.backups || strings.Join(wal, " ") != c.wal {
				t.Errorf("it removes the backups %v and WAL of the days %v, kept is %v", backups, wal, d.Kept)
			}
		})
	}
}

// leftBranch is an archive that was restored in place on the 21st, to the 5th: term 1002 goes on from there.
// The branch that was left has WAL and backups up to the 20th; the other one a backup from before, and that
// which was taken at once.
func leftBranch() book.Catalogue {
	c := aMonth(20, 3, 7, 9, 11, 13, 15, 17)
	c.Terms[1002] = &book.Term{
		TermHistory: []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 1002, LSN: 5*wal.SegmentSize + 0x100, Timeline: 2}},
	}
	for n := 5; n < 23; n++ {
		addWAL(&c, 1002, 2, n, archivetest.Day(21))
	}
	addBackup(&c, format.Backup{ID: "new", Term: 1002}, 22, archivetest.Day(21))
	return c
}

func TestABranchThatWasLeftIsKeptAsTheOtherIs(t *testing.T) {
	for name, c := range map[string]struct {
		count, days int
		want        string
	}{
		"a count goes over both":                       {7, 0, ""},
		"it evicts none of those that lead to the end": {2, 0, "b11 b13 b15 b7 b9"},
		"days hold on it":                              {1, 7, "b11 b7 b9"},
		"days that begin before the fork hold on both": {1, 17, ""},
		"days after its end do not need it":            {1, 1, "b11 b13 b15 b17 b3 b7 b9"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := leftBranch()
			now := archivetest.Day(21).Add(2 * time.Hour)
			if c.days == 1 {
				now = archivetest.Day(24)
			}
			d := byRules(t, archive, Policy{Count: c.count, Age: time.Duration(c.days) * 24 * time.Hour, Now: now})
			backups, _ := gone(d)
			if strings.Join(backups, " ") != c.want {
				t.Errorf("it removes %v, expected %s; kept is %v", backups, c.want, d.Kept)
			}
		})
	}
	// The WAL that leads from a kept backup to the end of its branch stays.
	_, wal := gone(Retain(leftBranch(), Policy{Count: 7, Now: archivetest.Day(22)}))
	if strings.Join(wal, " ") != "1 2" {
		t.Errorf("it removes WAL of the days %v", wal)
	}
}

func TestBackupsOfOneTriggerDoNotEvictThoseOfAnother(t *testing.T) {
	for name, c := range map[string]struct{ triggers, backups, wal string }{
		"scheduled ones leave one that was asked for": {
			"request schedule schedule schedule schedule", "b2 b3", "2 3",
		},
		"and those before a migration, and the last one": {"migration final schedule schedule schedule", "b3", "3"},
		"those asked for leave the scheduled ones":       {"schedule schedule request request request", "b3", ""},
		"one that does not say is of the schedule":       {" schedule schedule schedule request", "b1 b2", "1 2"},
		"without enough of the schedule no WAL goes":     {"request request schedule request request", "b1 b2", "1 2"},
		"nor where none is scheduled":                    {"request migration migration migration request", "b2", ""},
		"each is bounded":                                {"request request request schedule schedule", "b1", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := aMonth(5)
			for i, trigger := range strings.Split(c.triggers, " ") {
				addBackup(&archive, format.Backup{ID: fmt.Sprintf("b%d", i+1), Trigger: trigger, Term: 1}, i+1,
					archivetest.Day(i+1))
			}
			d := Retain(archive, Policy{Count: 2, Now: archivetest.Day(6)})
			if backups, wal := gone(d); strings.Join(backups, " ") != c.backups || strings.Join(wal, " ") != c.wal {
				t.Errorf("it removes %v and WAL of the days %v; kept is %v", backups, wal, d.Kept)
			}
			left := archive
			drop(&left, d)
			if good := book.Restorable(left.AllWindows()); len(good) != len(left.Backups) {
				t.Errorf("of %d backups that are kept only %d can be restored", len(left.Backups), len(good))
			}
		})
	}
}

// drop does what was decided.
func drop(c *book.Catalogue, d Deletions) { *c = retention{*c}.without(d.Names).Catalogue }

func TestRetentionThatWouldRemoveMoreThanItKeepsRemovesNothing(t *testing.T) {
	days := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for name, c := range map[string]struct {
		count int
		child string // an incremental one, and those before it back to b1
		held  bool
	}{
		"as much as it keeps":                 {5, "", false},
		"more than it keeps":                  {4, "", true},
		"a chain of many counts once":         {1, "b9", false},
		"everything is kept, nothing is held": {10, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			archive := aMonth(10, days...)
			for i := 1; i < len(archive.Backups) && archive.Backups[i-1].ID != c.child && c.child != ""; i++ {
				archive.Backups[i].Type, archive.Backups[i].Parent = format.TypeIncremental, archive.Backups[i-1].ID
			}
			d := Retain(archive, Policy{Count: c.count, Now: archivetest.Day(11)})
			if held := len(d.Held) == 1 && strings.Contains(d.Held[0], "in steps"); held != c.held ||
				held && (len(d.Names) > 0 || len(d.Deleted) > 0) {
				t.Errorf("it holds back %v and removes %v", d.Held, d.Deleted)
			}
		})
	}
}

// What decides is wrong here: the last look must notice.
func TestRetentionLooksAtWhatItWouldLeave(t *testing.T) {
	archive := leftBranch()
	p := Policy{Count: 7, Age: 20 * 24 * time.Hour, Now: archivetest.Day(22)}
	_, kept := retention{archive}.retain(p)
	wal := func(number uint64, days ...int) (names []string) {
		for _, w := range archive.Terms[number].WAL {
			if slices.Contains(days, int(w.Segment.Number)) {
				names = append(names, w.Object.Name)
			}
		}
		return names
	}
	for name, c := range map[string]struct {
		names  []string
		broken string
	}{
		"nothing is broken":                 {wal(1, 1, 2), ""},
		"the way to the end":                {wal(1002, 22), "branch 1002 could not be restored to 0/17000000"},
		"the way to the end of another":     {wal(1, 20), "b17"},
		"the first backup of the days":      {[]string{"base/b3/backup.json"}, "b3"},
		"a backup, and its WAL stays":       {[]string{"base/b17/backup.json"}, "b17"},
		"the WAL of a backup in the middle": {wal(1, 9), "b9, b7, b3"},
	} {
		t.Run(name, func(t *testing.T) {
			d := Deletions{Names: c.names}
			why := (retention{archive}).objection(p, d, kept)
			if !strings.Contains(why, c.broken) || c.broken == "" && why != "" {
				t.Errorf("it says %q", why)
			}
		})
	}
	// Without a backup that any rule names, the days still hold.
	d := Deletions{Names: []string{"base/b3/backup.json"}}
	if why := (retention{archive}).objection(p, d, nil); !strings.Contains(why, "from 2026-11-03 03:00:00") {
		t.Errorf("it says %q", why)
	}
}

func TestAPinnedBackupStaysAsItWasWhenItEnded(t *testing.T) {
	archive := aMonth(10, 2, 4, 6, 8, 10)
	p := Policy{Count: 3, Now: archivetest.Day(11), Pinned: []string{"b2"}}
	d := byRules(t, archive, p)
	if backups, wal := gone(d); strings.Join(backups, " ") != "b4" || strings.Join(wal, " ") != "1 3 4 5" {
		t.Errorf("it removes %v and WAL of the days %v", backups, wal)
	}
	drop(&archive, d)
	if got, err := archive.Choose(book.Wanted{Backup: "b2", Target: book.Target{Immediate: true},
		Now: p.Now}); err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	// The parents of one go with it; they need no WAL beyond their own.
	archive = aMonth(10, 2, 3, 4, 6, 8, 10)
	for _, i := range []int{1, 2} {
		archive.Backups[i].Type, archive.Backups[i].Parent = format.TypeIncremental, archive.Backups[i-1].ID
	}
	p.Pinned = []string{"b4"}
	if backups, wal := gone(byRules(t, archive, p)); len(backups) > 0 || strings.Join(wal, " ") != "1 5" {
		t.Errorf("it removes %v and WAL of the days %v", backups, wal)
	}
	// One that is in use leads on.
	p.Pinned, p.InUse = nil, []string{"b2"}
	if backups, wal := gone(byRules(t, aMonth(10, 2, 4, 6, 8, 10), p)); strings.Join(backups, " ") != "b4" ||
		strings.Join(wal, " ") != "1" {
		t.Errorf("it removes %v and WAL of the days %v", backups, wal)
	}
}

// Without a policy nothing is too old.
func TestWithoutAPolicyNothingGoes(t *testing.T) {
	d := Retain(aMonth(10, 2, 4, 6, 8, 10), Policy{Now: archivetest.Day(28)})
	if backups, _ := gone(d); len(backups) > 0 || len(d.Kept) < 5 || d.Kept[0].Reason != KeptNoPolicy {
		t.Errorf("it removes %v; kept is %v", backups, d.Kept)
	}
}

// An incremental backup that nothing keeps takes those with it that only it consisted of; of one that is kept, all that
// it consists of stay, and lead on as it does.
func TestParentsGoWithTheirChildren(t *testing.T) {
	archive := aMonth(10, 2, 3, 6, 8)
	for _, i := range []int{1, 3} {
		archive.Backups[i].Type, archive.Backups[i].Parent = format.TypeIncremental, archive.Backups[i-1].ID
	}
	d := byRules(t, archive, Policy{Count: 1, Now: archivetest.Day(11)})
	if backups, wal := gone(d); strings.Join(backups, " ") != "b2 b3" || strings.Join(wal, " ") != "1 2 3 4 5" {
		t.Errorf("it removes %v and WAL of the days %v; kept is %v", backups, wal, d.Kept)
	}
}

// A window whose last WAL lies a little before the promised time may reach into it: WAL is archived after it is
// written.
func TestAWindowThatEndedJustBeforeThePromisedTimeIsKept(t *testing.T) {
	for age, want := range map[time.Duration]string{
		7*24*time.Hour - 30*time.Minute: "",
		7*24*time.Hour - 90*time.Minute: "b2",
	} {
		archive := aMonth(17, 2, 17)
		loseWAL(&archive, 11, 12, 13, 14, 15, 16)
		d := byRules(t, archive, Policy{Age: age, Now: archivetest.Day(17)})
		if backups, _ := gone(d); strings.Join(backups, " ") != want {
			t.Errorf("of the last %s it removes %v, expected %s; kept is %v", age, backups, want, d.Kept)
		}
	}
}

// What can't be understood may need more than is known.
func TestWhatCantBeUnderstoodKeepsWhatItMayNeed(t *testing.T) {
	month := func() book.Catalogue { return aMonth(10, 2, 4, 6, 8, 10) }
	spoiltBackup := func(day int, at time.Time) func(c *book.Catalogue) {
		return func(c *book.Catalogue) {
			id := fmt.Sprintf("b%d", day)
			c.Backups = slices.DeleteFunc(c.Backups, func(b format.Backup) bool { return b.ID == id })
			c.Contents[id] = []bucket.Object{{Name: "base/" + id + "/base.tar.00000.zst", Modified: at}}
			c.Unread = []book.Unread{{Name: "base/" + id + "/backup.json", Problem: "it is cut off", Backup: id}}
		}
	}
	for name, c := range map[string]struct {
		archive      book.Catalogue
		spoil        func(c *book.Catalogue)
		backups, wal string
	}{
		"all is understood":                               {month(), func(*book.Catalogue) {}, "b2 b4", "1 2 3 4 5"},
		"the oldest backup":                               {month(), spoiltBackup(2, archivetest.Day(2)), "b4", ""},
		"one in the middle":                               {month(), spoiltBackup(6, archivetest.Day(6)), "", ""},
		"the newest backup":                               {month(), spoiltBackup(10, archivetest.Day(10)), "", ""},
		"the history of the term":                         {month(), spoiltTerm(1), "", ""},
		"the history of a later term":                     {leftBranch(), spoiltTerm(1002), "", ""},
		"the history of a term that another goes on with": {leftBranch(), spoiltTerm(1), "b11 b13 b7 b9", "1 2"},
		"the owner": {month(), func(c *book.Catalogue) {
			c.Unread = []book.Unread{{Name: format.FileArchive, Problem: "it is cut off"}}
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.spoil(&c.archive)
			d := byRules(t, c.archive, Policy{Count: 3, Now: archivetest.Day(22)})
			if backups, wal := gone(d); strings.Join(backups, " ") != c.backups || strings.Join(wal, " ") != c.wal {
				t.Errorf("it removes %v and WAL of the days %v; kept is %v", backups, wal, d.Kept)
			}
			if u := c.archive.Unread; len(u) > 0 && (len(d.Held) != 1 || !strings.Contains(d.Held[0], u[0].Name) ||
				!strings.Contains(d.Held[0], "put it back")) {
				t.Errorf("it says %v", d.Held)
			}
		})
	}
}

func spoiltTerm(number uint64) func(c *book.Catalogue) {
	return func(c *book.Catalogue) {
		name := format.TermFolder(number) + format.FileLineage
		c.Terms[number].TermHistory, c.Terms[number].Note = nil, bucket.Object{Name: name}
		c.Unread = []book.Unread{{Name: name, Problem: "it is cut off", Term: number}}
		for _, other := range c.Terms { // as it is read
			i := slices.IndexFunc(other.TermHistory, func(s ha.TermStart) bool { return s.Term == number })
			if i >= 0 {
				c.Terms[number].TermHistory = slices.Clone(other.TermHistory[:i+1])
				break
			}
		}
	}
}

// Whoever can write into an archive and remove nothing may put what looks like backups there. By a count these take the
// place of real ones; what the promised days need stays all the same.
func TestForgedBackupsTakeNothingOfThePromisedDays(t *testing.T) {
	c := aMonth(26, 16, 18, 20, 22, 24, 26)
	taken := slices.Clone(c.Backups)
	for i := range 50 {
		addBackup(&c, format.Backup{ID: fmt.Sprintf("forged%d", i), Term: 1}, 26,
			archivetest.Day(26).Add(time.Duration(i)*time.Minute))
	}
	c.Terms[9] = &book.Term{TermHistory: []ha.TermStart{
		{Term: 1, Timeline: 1}, {Term: 9, LSN: 5 * wal.SegmentSize, Timeline: 2},
	}}
	for n := 5; n < 60; n++ {
		addWAL(&c, 9, 2, n, archivetest.Day(26))
	}
	addBackup(&c, format.Backup{ID: "forged", Term: 9}, 59, archivetest.Day(26).Add(2*time.Hour))
	d, _ := retention{c}.retain(Policy{Count: 1, Age: 7 * 24 * time.Hour, Now: archivetest.Day(26).Add(3 * time.Hour)})
	lost, wal := gone(d)
	for _, b := range taken[1:] { // from the last before the seven days on
		if slices.Contains(lost, b.ID) {
			t.Errorf("%s is gone", b.ID)
		}
	}
	for n := 18; n <= 26; n++ {
		if slices.Contains(wal, fmt.Sprint(n)) {
			t.Errorf("the WAL of day %d is gone", n)
		}
	}
}

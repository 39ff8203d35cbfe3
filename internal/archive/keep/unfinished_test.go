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
)

// A backup that has not ended has no backup.json yet that would say what it needs. So the WAL stays that was written
// since a little before its first object.
func TestABackupThatMayBeUnderWayKeepsItsWAL(t *testing.T) {
	const hour = time.Hour
	for name, c := range map[string]struct {
		change  func(*Policy)
		objects []time.Time
		wal     string
		stays   bool
	}{
		"no backup is under way": {nil, nil, "1 2 3 4 5 6 7 8 9", false},
		"one is, since the 7th": {nil, []time.Time{archivetest.Day(7).Add(hour / 2), archivetest.Day(11)},
			"1 2 3 4 5 6",
			true},
		"its first is listed last": {nil, []time.Time{archivetest.Day(11), archivetest.Day(9),
			archivetest.Day(7).Add(hour / 2)}, "1 2 3 4 5 6", true},
		"it has only begun": {nil, []time.Time{archivetest.Day(11)}, "1 2 3 4 5 6 7 8 9", true},
		"it has had nothing new for long": {
			nil, []time.Time{archivetest.Day(7), archivetest.Day(8)}, "1 2 3 4 5 6 7 8 9", false,
		},
		"that is no longer than it may take": {
			func(p *Policy) { p.Unfinished = 4 * 24 * hour }, []time.Time{archivetest.Day(7),
				archivetest.Day(8)}, "1 2 3 4 5 6", true,
		},
		"that is longer than it may take": {
			func(p *Policy) { p.Unfinished = hour }, []time.Time{archivetest.Day(7), archivetest.Day(11).Add(-hour)},
			"1 2 3 4 5 6 7 8 9", false,
		},
		"somebody uses it": {
			func(p *Policy) { p.InUse = []string{"u"} }, []time.Time{archivetest.Day(7),
				archivetest.Day(8)}, "1 2 3 4 5 6", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := aMonth(11, 2, 4, 10)
			if c.objects != nil {
				u := book.Unfinished{ID: "u"}
				for i, at := range c.objects {
					object := bucket.Object{Name: fmt.Sprintf("%su/base.tar.%05d.zst", format.FolderBase, i),
						Modified: at}
					u.Objects = append(u.Objects, object)
				}
				archive.Unfinished = append(archive.Unfinished, u)
			}
			p := Policy{Count: 1, Now: archivetest.Day(11).Add(hour)}
			if c.change != nil {
				c.change(&p)
			}
			d := byRules(t, archive, p)
			if _, wal := gone(d); strings.Join(wal, " ") != c.wal {
				t.Errorf("it removes WAL of the days %v, expected %s", wal, c.wal)
			}
			removed := slices.ContainsFunc(d.Deleted, func(v Verdict) bool { return v.Reason == DeletedGivenUp })
			if under := len(c.objects) > 0; under && removed == c.stays || !under && removed {
				t.Errorf("it is given up: %v; kept is %v", removed, d.Kept)
			}
		})
	}
}

// WAL from before the first object of a backup that may be under way stays, however lately that has begun.
func TestABackupThatHasJustBegunKeepsTheWALOfAnHourBefore(t *testing.T) {
	archive := aMonth(10, 2, 10)
	addWAL(&archive, 1, 1, 9, archivetest.Day(11).Add(-75*time.Minute))
	begun := bucket.Object{Name: format.FolderBase + "u/base.tar.00000.zst",
		Modified: archivetest.Day(11).Add(-30 * time.Minute)}
	archive.Unfinished = []book.Unfinished{{ID: "u", Objects: []bucket.Object{begun}}}
	d := byRules(t, archive, Policy{Count: 1, Now: archivetest.Day(11).Add(time.Hour)})
	if _, wal := gone(d); strings.Count(strings.Join(wal, " "), "9") != 1 {
		t.Errorf("it removes WAL of the days %v, expected 9 once", wal)
	}
}

// Where the clock of the store is a little ahead, or a backup's first object is late, WAL of the last hour stays.
func TestWALOfTheLastHourStays(t *testing.T) {
	archive := aMonth(10, 2, 10)
	addWAL(&archive, 1, 1, 9, archivetest.Day(11)) // somebody has put it there again
	d := byRules(t, archive, Policy{Count: 1, Now: archivetest.Day(11).Add(59 * time.Minute)})
	if _, wal := gone(d); strings.Count(strings.Join(wal, " "), "9") != 1 {
		t.Errorf("it removes WAL of the days %v, expected 9 once", wal)
	}
	d = byRules(t, archive, Policy{Count: 1, Now: archivetest.Day(11).Add(61 * time.Minute)})
	if _, wal := gone(d); strings.Count(strings.Join(wal, " "), "9") != 2 {
		t.Errorf("it removes WAL of the days %v, expected 9 twice", wal)
	}
}

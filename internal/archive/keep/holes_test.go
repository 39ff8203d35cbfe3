package keep

import (
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/scrub"
)

// WAL that leads on from a backup that stands alone is what retention removes.
func TestHolesOfRetentionAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *book.Catalogue)
		pinned []string
		holes  int
	}{
		"the schedule's leads on": {func(*book.Catalogue) {}, nil, 1},
		"one that is pinned":      {func(*book.Catalogue) {}, []string{"b2"}, 0},
		"one that was asked for":  {func(c *book.Catalogue) { c.Backups[0].Trigger = "request" }, nil, 0},
		"one asked for beside a scheduled": {func(c *book.Catalogue) {
			addBackup(c, format.Backup{ID: "r", Trigger: "request", Term: 1}, 3,
				archivetest.Day(3))
		}, nil, 1},
		"the parent of one that is pinned": {func(c *book.Catalogue) {
			addBackup(c, format.Backup{ID: "child", Term: 1}, 3, archivetest.Day(3))
			c.Backups[1].Parent, c.Backups[1].Type = "b2", format.TypeIncremental
		}, []string{"child"}, 0},
		"a gap that is noted": {func(c *book.Catalogue) {
			gap := format.Gap{From: format.SegmentStart(5), To: format.SegmentStart(6)}
			c.Terms[1].Gaps = append(c.Terms[1].Gaps, bucket.Object{Name: format.TermFolder(1) + gap.Name()})
		}, nil, 0},
		"what came last was written side by side": {func(c *book.Catalogue) { loseWAL(c, 8, 9) }, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			catalogue := aMonth(10, 2, 7)
			loseWAL(&catalogue, 5)
			c.change(&catalogue)
			if holes := scrub.Holes(catalogue, archivetest.Day(10), c.pinned); len(holes) != c.holes {
				t.Errorf("found %+v", holes)
			}
		})
	}
}

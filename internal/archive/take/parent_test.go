package take

import (
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
)

func TestWhatTheNextBackupIsTheChangeFrom(t *testing.T) {
	first := []ha.TermStart{{Term: 1, Timeline: 1}}
	second := append(first, ha.TermStart{Term: 2, LSN: 500, Timeline: 2})
	make3 := func(modify func(*book.Catalogue)) book.Catalogue {
		c := book.Catalogue{
			Terms:    map[uint64]*book.Term{1: {TermHistory: first}, 2: {TermHistory: second}},
			Contents: map[string][]bucket.Object{},
		}
		for i, b := range []format.Backup{
			{ID: "full", Type: format.TypeFull, StopLSN: 100, Term: 1},
			{ID: "one", Type: format.TypeIncremental, Parent: "full", StopLSN: 200, Term: 1},
			{ID: "two", Type: format.TypeIncremental, Parent: "one", StopLSN: 300, Term: 1},
		} {
			b.Stopped = time.Unix(int64(i), 0)
			c.Backups = append(c.Backups, b)
		}
		modify(&c)
		return c
	}
	none := func(*book.Catalogue) {}
	for name, c := range map[string]struct {
		history []ha.TermStart
		every   int
		modify  func(*book.Catalogue)
		want    string
	}{
		"the last":                            {first, 4, none, "two"},
		"the last, in another's lineage":      {second, 4, none, "two"},
		"its chain has as many as are wanted": {first, 3, none, ""},
		"it has more":                         {first, 2, none, ""},
		"there is none":                       {first, 4, func(c *book.Catalogue) { c.Backups = nil }, ""},
		"the full one it needs is gone":       {first, 4, func(c *book.Catalogue) { c.Backups = c.Backups[1:] }, ""},
		"a piece of it is gone": {
			first, 4, func(c *book.Catalogue) {
				c.Backups[0].Pieces = []format.Object{{Name: "base.tar.00000.zst",
					Size: 1}}
			}, "",
		},
		"the last is of a branch that was left": {second, 4, func(c *book.Catalogue) { c.Backups[2].StopLSN = 600 },
			"one"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Parent(make3(c.modify), c.history, c.every)
			if got.ID != c.want || ok != (c.want != "") {
				t.Errorf("it is %q (%v), want %q", got.ID, ok, c.want)
			}
		})
	}
}

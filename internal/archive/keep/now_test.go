package keep

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
)

func TestNowIsNotFarAheadOfTheArchive(t *testing.T) {
	month := aMonth(20, 1, 10)
	newer := aMonth(20, 1, 10)
	newer.Unfinished = []book.Unfinished{{ID: "u", Objects: []bucket.Object{{Modified: archivetest.Day(25)}}}}
	for name, c := range map[string]struct {
		archive   book.Catalogue
		age       time.Duration
		now, want time.Time
		said      bool
	}{
		"as the store's clock":    {month, time.Hour, archivetest.Day(20), archivetest.Day(20), false},
		"a day ahead":             {month, time.Hour, archivetest.Day(21), archivetest.Day(21), false},
		"five days ahead":         {month, time.Hour, archivetest.Day(25), archivetest.Day(21), true},
		"where days do not count": {month, 0, archivetest.Day(25), archivetest.Day(21), false},
		"behind":                  {month, time.Hour, archivetest.Day(2), archivetest.Day(2), false},
		"a backup is under way":   {newer, time.Hour, archivetest.Day(25), archivetest.Day(25), false},
		"there is nothing to see": {book.Catalogue{}, time.Hour, archivetest.Day(25), archivetest.Day(25), false},
	} {
		got, said := Policy{Now: c.now, Age: c.age, Count: 3}.Bounded(c.archive)
		if !got.Now.Equal(c.want) || (said != "") != c.said || said != "" && !strings.Contains(said, "clocks") ||
			got.Count != 3 {
			t.Errorf("%s: %s, %q", name, got.Now, said)
		}
	}
}

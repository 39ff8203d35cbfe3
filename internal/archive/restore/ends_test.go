package restore

import (
	"errors"
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
)

// All WAL is replayed, and no later commit has come.
func TestWhereATimeIsReachedAtTheEnd(t *testing.T) {
	short := &ShortError{Target: book.Target{Time: archivetest.Hour(12)},
		Reached: Recovered{LSN: 0x5000000, Commit: archivetest.Hour(11)}}
	gap := book.Window{Missing: &format.Gap{From: 0x5000000, To: 0x6000000}}
	const missing = "no WAL from 0/5000000 to 0/6000000"
	for name, c := range map[string]struct {
		choice book.Choice
		target book.Target
		error  string
	}{
		"at the end of the archive": {book.Choice{Open: true}, book.Target{Time: archivetest.Hour(12)}, ""},
		"before a gap":              {book.Choice{Window: gap}, book.Target{Time: archivetest.Hour(12)}, missing},
		"on a branch that was left": {book.Choice{Branch: 7}, book.Target{Time: archivetest.Hour(12)},
			"branch 7 was left"},
		"a position before a gap":        {book.Choice{Window: gap}, book.Target{LSN: 0x5000000}, ""},
		"a position that is not there":   {book.Choice{Open: true}, book.Target{LSN: 0x5000001}, "was not reached"},
		"a transaction, at the very end": {book.Choice{Open: true}, book.Target{XID: "7"}, "was not reached"},
	} {
		err := ends(c.choice, c.target, short)
		if (err == nil) != (c.error == "") || err != nil && !strings.Contains(err.Error(), c.error) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !errors.Is(err, book.ErrOutside) && !errors.As(err, new(*ShortError)) {
			t.Errorf("%s: it is tried for ever: %v", name, err)
		}
	}
}

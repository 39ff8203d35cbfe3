package keep

import (
	"testing"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// A history that is there without encryption too is read without a key. Retention removes both.
func TestHistoryWithoutKey(t *testing.T) {
	history := format.TermFolder(2) + wal.Timeline(2).HistoryFile()
	for _, order := range [][2]string{{".zst", ".zst.age"}, {".zst.age", ".zst"}} {
		c := book.NewCatalogue([]bucket.Object{
			{Name: history + order[0]}, {Name: history + order[1]},
		}, nil, nil)
		term := c.Terms[2]
		if term.Histories[2].Name != history+".zst" || len(notesOf(term)) != 2 {
			t.Errorf("%v: the history is %q, the notes are %q", order, term.Histories[2].Name, notesOf(term))
		}
		if uses := c.KeyUses(); len(uses) != 0 {
			t.Errorf("%v: it needs %+v", order, uses)
		}
	}
}

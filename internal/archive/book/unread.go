package book

import (
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
)

// Unread is an object of an archive that can't be understood.
type Unread struct {
	Name, Problem string
	// Backup is the id of the backup that it is about, Term the term, "" and 0 for none.
	Backup string
	Term   uint64
}

// String says what is kept because of it, and what to do.
func (u Unread) String() string {
	what, remedy := "everything", "put it back from a copy"
	switch {
	case u.Backup != "":
		what = "all backups from before it and all WAL"
		remedy += ", or delete it to give that backup up"
	case u.Term != 0:
		what = fmt.Sprintf("all backups and WAL of term %d and those before, unless a later term's says the same",
			u.Term)
		remedy += fmt.Sprintf(", or, if term %d is over, delete %s to give up what only its leader wrote",
			u.Term, strings.TrimSuffix(u.Name, format.FileLineage))
	}
	return fmt.Sprintf("%s can't be understood (%s), so Toban keeps %s: %s", u.Name, u.Problem, what, remedy)
}

// infer takes a term history that can't be understood from one that continues it.
func (c *Catalogue) infer() {
	for _, u := range c.Unread {
		if u.Term == 0 {
			continue
		}
		for _, other := range c.Terms {
			i := slices.IndexFunc(other.TermHistory, func(s ha.TermStart) bool { return s.Term == u.Term })
			if i >= 0 {
				c.Terms[u.Term].TermHistory = slices.Clone(other.TermHistory[:i+1])
				break
			}
		}
	}
}

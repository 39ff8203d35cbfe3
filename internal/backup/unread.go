package backup

import (
	"fmt"
	"slices"
	"strings"
	"time"

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

// held is what objects that can't be understood may need.
type held struct {
	// all says that it may be anything, wal any WAL.
	all, wal bool
	// before is when the last of such backups had begun: it may be the change from any that ended before.
	before time.Time
	// term is the latest of such terms: its leader may have gone on with any before.
	term uint64
}

func (r retention) held() held {
	var h held
	for _, u := range r.Unread {
		switch {
		case u.Backup != "":
			h.wal = true // how far back that goes, only the object says
			if begun := r.firstObject(u.Backup); begun.After(h.before) {
				h.before = begun
			}
		case u.Term == 0:
			h.all = true
		case r.Terms[u.Term].TermHistory == nil:
			h.term = max(h.term, u.Term)
		}
	}
	return h
}

// firstObject is when the first object of a backup was written.
func (r retention) firstObject(id string) time.Time {
	var first time.Time
	for _, o := range r.Contents[id] {
		if first.IsZero() || o.Modified.Before(first) {
			first = o.Modified
		}
	}
	return first
}

// needs says that a backup may be needed. Its time is not the store's, which may differ.
func (h held) needs(b format.Backup) bool {
	return !h.before.IsZero() && b.Stopped.Before(h.before.Add(slack)) || b.Term <= h.term
}

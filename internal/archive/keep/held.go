package keep

import (
	"time"

	"toban.dev/internal/archive/format"
)

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

package keep

import (
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// objection is why nothing of what retention has decided may be done, "" for no reason. It looks at the archive as it
// would be, and knows nothing of how that was decided.
func (r retention) objection(p Policy, d Deletions, kept []keptBackup) string {
	if len(d.Names) == 0 {
		return ""
	}
	after := r.without(d.Names)
	if broken := r.breaks(p, after, kept); broken != "" {
		return "retention has removed nothing, because then " + broken +
			". This is a mistake in Toban: report it, with a listing of the archive"
	}
	goes, stays := len(r.fulls())-len(after.fulls()), len(after.fulls())+total(p.Newer)
	if goes > stays {
		return fmt.Sprintf("retention has removed nothing, because of %d full backups it would remove %d and keep %d. "+
			"If that is meant, lower spec.backup.retention in steps, each to no less than half of what is kept, with "+
			"a backup after each", goes+stays, goes, stays)
	}
	return ""
}

// fulls are the full backups.
func (r retention) fulls() []format.Backup {
	return slices.DeleteFunc(slices.Clone(r.Backups), func(b format.Backup) bool { return b.Parent != "" })
}

// without is the archive after objects were deleted.
func (r retention) without(names []string) retention {
	gone := map[string]bool{}
	for _, name := range names {
		gone[name] = true
	}
	after := r
	after.Backups = slices.DeleteFunc(slices.Clone(r.Backups),
		func(b format.Backup) bool { return gone[b.Folder()+format.FileBackup] })
	after.Terms = map[uint64]*book.Term{}
	for number, term := range r.Terms {
		left := *term
		left.WAL = slices.DeleteFunc(slices.Clone(term.WAL), func(w book.WAL) bool { return gone[w.Object.Name] })
		if gone[term.Note.Name] {
			left.TermHistory = nil
		}
		after.Terms[number] = &left
	}
	return after
}

// breaks is which promise is broken by what is left of an archive, "" for none: that the newest branch can be restored
// to its end, that each kept backup can be restored, and all but one that stands alone to where it led; and that every
// moment of the promised time can.
func (r retention) breaks(p Policy, after retention, kept []keptBackup) string {
	for n, branch := range r.Branches() {
		history := branch.Histories[0]
		left := after.Windows(history)
		for i, w := range r.Windows(history) {
			words := fmt.Sprintf("branch %d could not be restored to %s any more", branch.Name, w.To)
			if n == 0 && i == 0 && p.Newer == nil && !leads(left, w.To, func(format.Backup) bool { return true }) {
				return words
			}
			if broken := keptIn(w, left, kept); broken != "" {
				return broken
			}
			moment := w.Since
			if horizon := p.Now.Add(-p.Age); moment.Before(horizon) {
				moment = horizon
			}
			if p.Age > 0 && !w.Until.Before(moment) &&
				!leads(left, w.To, func(b format.Backup) bool { return !b.Stopped.After(moment) }) {
				return words + " from " + moment.UTC().Format(format.TimeFormat)
			}
		}
	}
	return ""
}

// leads says that windows lead to an LSN from such a backup.
func leads(windows []book.Window, to wal.LSN, from func(format.Backup) bool) bool {
	return slices.ContainsFunc(windows, func(w book.Window) bool {
		return w.To >= to && slices.ContainsFunc(w.Backups, from)
	})
}

// keptIn is which kept backup of a window does not lead any more to where it has to.
func keptIn(w book.Window, left []book.Window, kept []keptBackup) string {
	var broken []string
	for _, k := range kept {
		if !slices.ContainsFunc(w.Backups, func(b format.Backup) bool { return b.ID == k.ID }) {
			continue
		}
		to := w.To
		if k.alone {
			to = k.StopLSN
		}
		if !leads(left, to, func(b format.Backup) bool { return b.ID == k.ID }) {
			broken = append(broken, k.ID)
		}
	}
	if len(broken) == 0 {
		return ""
	}
	return fmt.Sprintf("what is kept could not be restored any more to %s: %s", w.To, strings.Join(broken, ", "))
}

// Package keep looks after what an archive has: it decides what of it is kept and what goes.
package keep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
)

// Policy says what is kept: what any of its rules keeps.
type Policy struct {
	// Count is how many backups at least of each trigger, 0 for no such rule. Only those count that can be restored.
	Count int
	// Age is how far one can go back in time at least, 0 for no such rule: in every window that reaches so far.
	Age time.Duration
	// Now is what time it is, by no clock alone (ByClocks).
	Now time.Time
	// Pinned are ids of backups that are kept whatever the rules say, as they were when they ended; InUse those that
	// are being restored or verified.
	Pinned, InUse []string
	// Snapshots are backups by the snapshots of volumes: they keep the WAL that they need themselves, and count for
	// nothing else.
	Snapshots []format.Backup
	// Newer is set for the archive of a former major version: how many backups of each kind that can be restored the
	// newer archives have. They count before those here, and nothing is written here any more.
	Newer map[string]int
	// Unfinished is after how long without a new object a backup that did not end is given up; 0 is a day.
	Unfinished time.Duration
}

// Why something is kept, or deleted.
const (
	KeptUnread      = "CatalogueIncomplete" // something there could not be understood
	KeptNoPolicy    = "NoPolicy"
	KeptCount       = "Count"
	KeptAge         = "Age"
	KeptLastGood    = "LastGood"
	KeptInUse       = "InUse"
	KeptPinned      = "Pinned"
	KeptParent      = "Parent" // of an incremental one that is kept
	KeptUnderWay    = "UnderWay"
	KeptNeeded      = "Needed" // by a kept backup, or by the next
	KeptUnknown     = "LineageUnknown"
	DeletedOutdated = "Outdated"
	DeletedGivenUp  = "GivenUp"
)

// Verdict is what becomes of a thing: a backup's folder, or the WAL of a term.
type Verdict struct{ Name, Reason, Message string }

// Deletions are what Retain decides.
type Deletions struct {
	// Names are the objects to delete, in this order: whenever it is cut short, the archive is in order.
	Names         []string
	Kept, Deleted []Verdict
	// Held says what is not deleted though the rules would have it, why, and what to do.
	Held []string
	// Empty says that nothing in the archive of a former major version is of use any more: all of it may go.
	Empty bool
}

func (d *Deletions) keep(name, reason, message string) {
	d.Kept = append(d.Kept, Verdict{name, reason, message})
}

func (d *Deletions) remove(v Verdict, names ...string) {
	d.Deleted = append(d.Deleted, v)
	d.Names = append(d.Names, names...)
}

// Retain decides what is deleted of an archive (invariants 6 and 9), and nothing where that would break a promise or is
// rather a mistake. It does no I/O.
func Retain(c book.Catalogue, p Policy) Deletions {
	r := retention{c}
	d, kept := r.retain(p)
	if why := r.objection(p, d, kept); why != "" {
		return Deletions{Held: append(d.Held, why), Kept: d.Kept}
	}
	return d
}

// retention is an archive, for the rules that say what of it is kept.
type retention struct{ book.Catalogue }

// retain decides by the rules alone.
func (r retention) retain(p Policy) (d Deletions, kept []keptBackup) {
	for _, u := range r.Unread {
		d.keep(u.Name, KeptUnread, u.Problem)
		d.Held = append(d.Held, u.String())
	}
	held := r.held()
	if held.all {
		return d, nil
	}
	reasons := r.keptBackups(p, held)
	alone := r.standAlone(p, reasons)
	// A child was started after its parent, and goes before it.
	backups := slices.Clone(r.Backups)
	slices.SortFunc(backups,
		func(a, b format.Backup) int { return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID)) })
	for _, b := range backups {
		if v, ok := reasons[b.ID]; ok {
			d.keep(v.Name, v.Reason, v.Message)
			kept = append(kept, keptBackup{b, alone[b.ID]})
			continue
		}
		d.remove(Verdict{b.Folder(), DeletedOutdated, "no rule keeps it"}, FolderNames(b.Folder(), r.ContentsOf(b))...)
	}
	begun := r.retainUnfinished(p, &d)
	if total(p.Newer) > 0 && len(d.Kept) == 0 && len(p.Snapshots) == 0 {
		d.Empty = true
		return d, nil
	}
	// Where nothing can be restored, nothing says which WAL is of use.
	if len(kept) > 0 && !held.wal {
		needing := slices.Clone(kept)
		for _, b := range p.Snapshots {
			needing = append(needing, keptBackup{b, true})
		}
		r.retainWAL(needing, held.term, begun, p.Newer != nil, &d)
	}
	return d, kept
}

// FolderNames are the objects of a backup's folder, backup.json first.
func FolderNames(folder string, in []bucket.Object) []string {
	names := []string{folder + format.FileBackup}
	for _, o := range in {
		if o.Name != folder+format.FileBackup {
			names = append(names, o.Name)
		}
	}
	return names
}

// keptBackup is a backup that is kept, and whether without the WAL from it on.
type keptBackup struct {
	format.Backup
	alone bool
}

// standAlone are the backups that are kept only as what they are, with the WAL that they need themselves: those that
// are only pinned; of those that lead to the end of the archive, the ones that a count alone keeps, of another kind
// than the schedule's, from before as many of the schedule's as are wanted; and the parents of nothing else. Else one
// that somebody has made a year ago would keep the WAL of a year.
func (r retention) standAlone(p Policy, reasons map[string]Verdict) map[string]bool {
	good, alone := r.good(), map[string]bool{}
	var scheduled []format.Backup
	for _, b := range good {
		if b.Kind() == naming.TriggerSchedule && reasons[b.ID].Name != "" {
			scheduled = append(scheduled, b)
		}
	}
	for _, b := range good {
		alone[b.ID] = p.Count > 0 && p.Newer[naming.TriggerSchedule]+len(scheduled) >= p.Count &&
			b.Kind() != naming.TriggerSchedule && reasons[b.ID].Reason == KeptCount &&
			(len(scheduled) == 0 || b.Stopped.Before(scheduled[0].Stopped))
	}
	for _, b := range slices.Backward(r.Backups) { // children before their parents
		switch reasons[b.ID].Reason {
		case KeptPinned:
			alone[b.ID] = true
		case KeptParent:
			alone[b.ID] = !slices.ContainsFunc(r.Backups, func(child format.Backup) bool {
				return child.Parent == b.ID && reasons[child.ID].Name != "" && !alone[child.ID]
			})
		}
	}
	return alone
}

// keptBackups are the backups to keep, each with the first reason there is.
func (r retention) keptBackups(p Policy, held held) map[string]Verdict {
	kept := map[string]Verdict{}
	keep := func(b format.Backup, reason, message string) {
		if _, ok := kept[b.ID]; !ok {
			kept[b.ID] = Verdict{b.Folder(), reason, message}
		}
	}
	for _, b := range r.Backups {
		switch {
		case p.Count <= 0 && p.Age <= 0:
			keep(b, KeptNoPolicy, "nothing says how long to keep backups")
		case held.needs(b):
			keep(b, KeptUnread, "what can't be understood may need it")
		case slices.Contains(p.InUse, b.ID):
			keep(b, KeptInUse, "it is being restored or verified")
		}
	}
	good, windows := r.good(), r.AllWindows()
	if p.Age > 0 && p.Newer == nil {
		keepAge(p, r.Backups, good, windows, keep)
	} else if p.Age > 0 { // the end of the archive has no moment of now
		keepAge(p, r.Backups, nil, windows, keep)
	}
	keepCount(p, r.Backups, book.Restorable(windows), keep)
	// Backups of a branch that was left may be newer: they evict none of those that lead to the end.
	keepCount(p, good, book.Restorable([]book.Window{{Backups: good}}), keep)
	if total(p.Newer) == 0 {
		r.keepLast(good, keep)
	}
	for _, b := range r.Backups {
		if slices.Contains(p.Pinned, b.ID) {
			keep(b, KeptPinned, "it is pinned")
		}
	}
	r.keepParents(kept)
	return kept
}

// keepAge keeps what the moments of the promised time need: in every window that reaches into it, on any branch, the
// last backup before it too.
func keepAge(
	p Policy, all, good []format.Backup, windows []book.Window, keep func(b format.Backup, reason, message string),
) {
	horizon := p.Now.Add(-p.Age)
	for _, b := range all {
		if b.Stopped.After(horizon) {
			keep(b, KeptAge, fmt.Sprintf("it is not older than %s", p.Age))
		}
	}
	windows = append(windows, book.Window{Backups: good}) // in the latter nothing may have been written for long
	for _, w := range windows {
		if !w.Until.IsZero() && w.Until.Before(horizon.Add(-slack)) {
			continue
		}
		if i := lastBefore(w.Backups, horizon); i >= 0 {
			keep(w.Backups[i], KeptAge, fmt.Sprintf("moments of the last %s need it", p.Age))
		}
	}
}

// keepCount keeps the newest backups of each trigger, among them as many as count that can be restored. One that can't
// be does not count, and stays for as long as it would otherwise: what it lacks may come back. The oldest is first.
func keepCount(
	p Policy, backups []format.Backup, restorable map[string]bool, keep func(b format.Backup, reason, message string),
) {
	counted := map[string]int{}
	maps.Copy(counted, p.Newer)
	for _, b := range slices.Backward(backups) {
		if counted[b.Kind()] >= p.Count {
			continue
		}
		keep(b, KeptCount, fmt.Sprintf("it is one of the last %d", p.Count))
		if restorable[b.ID] {
			counted[b.Kind()]++
		}
	}
}

// keepLast keeps what leads to the end of the archive, or would if its leader wrote on.
func (r retention) keepLast(good []format.Backup, keep func(b format.Backup, reason, message string)) {
	if len(good) > 0 {
		keep(good[len(good)-1], KeptLastGood, "it is the last from which the end of the archive can be reached")
	} else {
		for _, b := range r.Backups {
			keep(b, KeptLastGood, "from none can the end of the archive be reached")
		}
	}
	for _, t := range r.Terms {
		// A leader that has not written WAL yet may be about to.
		if w, ok := r.Window(t.TermHistory); ok && len(t.WAL) == 0 &&
			t.TermHistory[len(t.TermHistory)-1].Term > r.newestTerm() {
			keep(w.Backups[len(w.Backups)-1], KeptLastGood,
				"it is the last that the leader of a new term can go on from")
		}
	}
}

// good are the backups which lead to the end of the newest term history's WAL; where there is
// none, all that are whole. The oldest is first.
func (r retention) good() []format.Backup {
	if w, ok := r.Window(r.NewestTermHistory()); ok {
		good := slices.Clone(w.Backups)
		slices.SortStableFunc(good, func(a, b format.Backup) int { return a.Stopped.Compare(b.Stopped) })
		return good
	}
	var good []format.Backup
	for _, b := range r.Backups {
		if _, err := r.Chain(b.ID); err == nil {
			good = append(good, b)
		}
	}
	return good
}

func (r retention) newestTerm() uint64 {
	newest := r.NewestTermHistory()
	if len(newest) == 0 {
		return 0
	}
	return newest[len(newest)-1].Term
}

// lastBefore is the place of the one that stopped last before a time, -1 for none.
func lastBefore(backups []format.Backup, at time.Time) int {
	last := -1
	for i, b := range backups {
		if !b.Stopped.After(at) && (last < 0 || !b.Stopped.Before(backups[last].Stopped)) {
			last = i
		}
	}
	return last
}

func (r retention) keepParents(kept map[string]Verdict) {
	for _, child := range slices.Backward(r.Backups) {
		for b := child; kept[child.ID].Name != "" && b.Parent != ""; {
			i := slices.IndexFunc(r.Backups, func(o format.Backup) bool { return o.ID == b.Parent })
			if i < 0 || r.Backups[i].ID == child.ID {
				break
			}
			b = r.Backups[i]
			if _, ok := kept[b.ID]; !ok {
				kept[b.ID] = Verdict{b.Folder(), KeptParent, child.ID + " consists of it too"}
			}
		}
	}
}

// total is how many backups there are of all kinds.
func total(kinds map[string]int) (all int) {
	for _, count := range kinds {
		all += count
	}
	return all
}

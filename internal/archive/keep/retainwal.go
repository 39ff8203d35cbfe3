package keep

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// slack is by how much earlier than its first object the WAL may have been written that a backup
// begins with: a standby begins at its last restartpoint, some checkpoint_timeout ago.
const slack = time.Hour

// retainUnfinished decides on backups that have not ended, and says since when WAL may be needed by one that still may.
func (r retention) retainUnfinished(p Policy, d *Deletions) (begun time.Time) {
	patience := p.Unfinished
	if patience <= 0 {
		patience = 24 * time.Hour
	}
	begun = p.Now.Add(-slack)
	for _, u := range r.Unfinished {
		folder := format.FolderBase + u.ID + "/"
		first, last := u.Objects[0].Modified, time.Time{}
		var names []string
		for _, o := range u.Objects {
			names = append(names, o.Name)
			if o.Modified.After(last) {
				last = o.Modified
			}
			if o.Modified.Before(first) {
				first = o.Modified
			}
		}
		if p.Now.Sub(last) <= patience || slices.Contains(p.InUse, u.ID) {
			d.keep(folder, KeptUnderWay, "it may be under way")
			if first.Add(-slack).Before(begun) {
				begun = first.Add(-slack)
			}
			continue
		}
		d.remove(Verdict{folder, DeletedGivenUp, "it has not ended, and has had nothing new since " +
			last.UTC().Format(time.RFC3339)}, names...)
	}
	return begun
}

// need is which WAL of a term is kept: from one LSN to another, and that of backups which are kept alone.
type need struct {
	from, to wal.LSN
	message  string
	alone    []format.Backup
}

// has says that a segment is needed.
func (n need) has(s wal.Segment) bool {
	within := s.End() > n.from && s.Start() < n.to
	return within || slices.ContainsFunc(n.alone,
		func(b format.Backup) bool { return s.End() > b.StartLSN && s.Start() <= b.StopLSN })
}

// retainWAL decides on WAL. What was written after begun is kept, and that of the terms up to unknown.
// Of a former archive no next backup needs any.
func (r retention) retainWAL(kept []keptBackup, unknown uint64, begun time.Time, former bool, d *Deletions) {
	var old []book.WAL
	left := map[uint64]bool{} // terms whose folder is left with nothing but notes
	for number, term := range r.Terms {
		need, ok := r.need(number, kept, former)
		if !ok || number <= unknown {
			d.keep(format.TermFolder(number), KeptUnknown, "it is not known whose WAL this continues")
			continue
		}
		var gone []book.WAL
		for _, p := range term.WAL {
			if !need.has(p.Segment) && p.Object.Modified.Before(begun) {
				gone = append(gone, p)
			}
		}
		old = append(old, gone...)
		if len(gone) < len(term.WAL) || len(term.WAL) == 0 {
			d.keep(format.TermFolder(number), KeptNeeded, need.message)
		}
		of := func(b keptBackup) bool { return b.Term == number }
		left[number] = len(gone) > 0 && len(gone) == len(term.WAL) &&
			number < r.newestTerm() && !slices.ContainsFunc(kept, of)
		if len(gone) > 0 {
			d.Deleted = append(d.Deleted, Verdict{
				format.TermFolder(number), DeletedOutdated,
				fmt.Sprintf("%d pieces of WAL, most before %s", len(gone), need.from),
			})
		}
	}
	slices.SortFunc(old, func(a, b book.WAL) int {
		return cmp.Or(cmp.Compare(a.Segment.Number, b.Segment.Number), cmp.Compare(a.From, b.From),
			cmp.Compare(a.Object.Name, b.Object.Name))
	})
	for _, p := range old {
		d.Names = append(d.Names, p.Object.Name)
	}
	for _, number := range slices.Sorted(maps.Keys(r.Terms)) {
		if left[number] {
			d.Names = append(d.Names, notesOf(r.Terms[number])...)
		}
	}
}

// notesOf are the objects that say what the WAL in a folder is of, the term history last.
func notesOf(t *book.Term) []string {
	var names []string
	for _, o := range t.Histories {
		names = append(names, o.Name)
	}
	for _, o := range slices.Concat(t.Gaps, t.Keys, t.Clocks, t.Spare) {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	if t.Note.Name != "" {
		names = append(names, t.Note.Name)
	}
	return names
}

// need is what kept backups may need of a term: along any term history that has them both, or has WAL in common with
// it. The newest leader's WAL, and that of later terms, is for the next backup too.
func (r retention) need(term uint64, kept []keptBackup, former bool) (need, bool) {
	histories := r.TermHistories()
	all := need{from: math.MaxUint64, message: "nothing"}
	found := false
	for n, history := range histories {
		end, own := wal.LSN(0), false
		if i := slices.IndexFunc(history, func(s ha.TermStart) bool { return s.Term == term }); i >= 0 {
			end, own = format.Cutoff(history, i), true
		} else if end = format.Parting(history, r.Terms[term].TermHistory); end == 0 {
			continue
		}
		found = found || own
		in := false
		for _, b := range kept {
			if !r.In(b.Backup, history) && len(r.TermHistoryOf(b.Backup, history)) > 0 {
				continue
			}
			if b.alone {
				all.alone = append(all.alone, b.Backup)
				continue
			}
			in = true
			all.to = max(all.to, end)
			if b.StartLSN < all.from {
				all.from, all.message = b.StartLSN, fmt.Sprintf("%s needs it from %s on", b.ID, b.StartLSN)
			}
		}
		if n == 0 && own && !in && !former {
			return need{to: math.MaxUint64, message: "the next backup needs it"}, true
		}
	}
	return all, found
}

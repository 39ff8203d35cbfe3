package keep

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// stepAside does what is done with branches, now and then.
func (w *world) stepAside() {
	switch n := w.others.IntN(40); {
	case n < 2:
		w.restoreInPlace()
	case n < 4:
		c, _ := book.Read(w.t.Context(), w.bucket.Without())
		if len(c.Backups) > 0 {
			w.pinned = append(w.pinned, c.Backups[w.others.IntN(len(c.Backups))].ID)
			w.note("pinned: %v", w.pinned)
		}
	case n < 5:
		w.pinned = nil
	}
}

// restoreInPlace goes back to a moment of a window, and on from there.
func (w *world) restoreInPlace() {
	c, err := book.Read(w.t.Context(), w.bucket.Without())
	if err != nil {
		w.fatal("read: %v", err)
	}
	branches := slices.DeleteFunc(c.Branches(), func(b book.Branch) bool { return len(b.Windows) == 0 })
	if len(branches) == 0 {
		return
	}
	b := branches[w.others.IntN(len(branches))]
	window := b.Windows[w.others.IntN(len(b.Windows))]
	at := window.From + wal.LSN(w.others.Uint64N(uint64(window.To-window.From)+1))
	choice, err := c.Choose(book.Wanted{Target: book.Target{LSN: at}, Branch: b.Name, Now: w.bucket.Clock})
	if err != nil {
		w.fatal("restore in place: %v", err)
	}
	history, timeline := format.BegunBefore(choice.TermHistory, at), wal.Timeline(0)
	for _, s := range format.UpTo(history, at) {
		timeline = max(timeline, s.Timeline)
	}
	if w.former.IntN(3) == 0 {
		history = format.UpTo(history, at)
	}
	newest := slices.Max(slices.Collect(maps.Keys(c.Terms)))
	for _, l := range w.leaders {
		newest = max(newest, l.Terms[len(l.Terms)-1].Term)
	}
	history = append(history, ha.TermStart{Term: newest + ha.RestoreTerms + 1, LSN: at, Timeline: timeline + 1})
	oldest := format.SegmentStart(format.NumberAt(at))
	l := &leader{
		Source: &archivetest.Source{Terms: history, End: at + 100, Begin: oldest}, from: choice.Backup.StartLSN,
	}
	l.begun = len(stretches(onlyOf(c, history), history)) > 0
	w.leaders = append(w.leaders, l)
	w.counts["restores"]++
	w.note("restored in place to %s of branch %d: %v", at, b.Name, history)
	w.restart(l)
}

// lookAtBranches looks whether every moment that the windows show can be restored.
func (w *world) lookAtBranches(b *buckettest.Memory, c book.Catalogue) {
	branches := c.Branches()
	if len(branches) > 1 {
		w.counts["several branches"]++
	}
	for n, branch := range branches {
		for _, window := range branch.Windows {
			span := uint64(window.To - window.From)
			for _, at := range []wal.LSN{window.From, window.To, window.From + wal.LSN(w.others.Uint64N(span+1))} {
				w.lookAtLSN(b, c, branches[n], at)
			}
			if length := window.Until.Sub(window.Since); length >= 0 && w.branches {
				w.lookAtTime(c, branches, n, window.Since.Add(time.Duration(w.others.Int64N(int64(length)+1))))
			}
		}
	}
}

func (w *world) lookAtLSN(b *buckettest.Memory, c book.Catalogue, branch book.Branch, at wal.LSN) {
	w.counts["moments of branches"]++
	want := book.Wanted{Target: book.Target{LSN: at}, Branch: branch.Name, Now: w.bucket.Clock}
	choice, err := c.Choose(want)
	if err != nil {
		w.fatal("branch %d shows %s: %v", branch.Name, at, err)
	}
	if choice.Branch != branch.Name || choice.To < at || choice.Backup.StopLSN > at ||
		!slices.Equal(format.UpTo(choice.TermHistory, at), format.UpTo(branch.Histories[0], at)) {
		w.fatal("%s of branch %d is read along %v, from %s", at, branch.Name, choice.TermHistory, choice.Backup.ID)
	}
	if b == w.bucket {
		w.restore(c, choice.TermHistory, choice.Backup.StartLSN, at)
	}
	want.Branch = 0
	other, err := c.Choose(want)
	same := err == nil && slices.Equal(format.UpTo(choice.TermHistory, at), format.UpTo(other.TermHistory, at))
	if !same && !errors.Is(err, book.ErrSeveral) {
		w.fatal("%s is on branch %d, and without a name is read along %v: %v", at, branch.Name, other.TermHistory, err)
	}
}

// lookAtTime also looks whether a time that one branch alone shows needs no name.
func (w *world) lookAtTime(c book.Catalogue, branches []book.Branch, n int, at time.Time) {
	want := book.Wanted{Target: book.Target{Time: at}, Branch: branches[n].Name, Now: w.bucket.Clock}
	choice, err := c.Choose(want)
	goesOn := n == 0 && choice.Window.Missing == nil && choice.Window.To == branches[0].Windows[0].To
	if err != nil || choice.Branch != branches[n].Name || choice.Backup.Stopped.After(at) ||
		choice.Window.Until.Before(at) && !goesOn {
		w.fatal("%s of branch %d is read from %s: %v", at, branches[n].Name, choice.Backup.ID, err)
	}
	want.Branch = 0
	choice, err = c.Choose(want)
	begun := slices.DeleteFunc(slices.Clone(branches), func(b book.Branch) bool { return at.Before(b.Since) })
	latest := slices.MaxFunc(begun, func(a, b book.Branch) int { return a.Since.Compare(b.Since) })
	last := latest.Name == branches[n].Name
	several := slices.ContainsFunc(begun, func(b book.Branch) bool {
		_, has := c.On(b, want)
		return b.Name != branches[n].Name && has
	})
	right := err == nil && choice.Branch == branches[n].Name
	if several {
		right = errors.Is(err, book.ErrSeveral)
	} else if !last {
		right = errors.Is(err, book.ErrOutside)
	}
	if !right {
		w.fatal("%s is on branch %d, the last %v, on several %v, and is read along %d: %v", at, branches[n].Name, last,
			several, choice.Branch, err)
	}
}

// someSmall is one of the objects that say something about others, "" where there is none.
func (w *world) someSmall(b *buckettest.Memory) string {
	var small []string
	for _, name := range slices.Sorted(maps.Keys(b.Objects)) {
		if format.IsSmall(name) && name != format.FileArchive {
			small = append(small, name)
		}
	}
	if len(small) == 0 {
		return ""
	}
	return small[w.others.IntN(len(small))]
}

// retainUnread looks what would be deleted if an object could not be understood, and was put back afterwards: all that
// it is about leads as far as before.
func (w *world) retainUnread(policy Policy) {
	spoilt := w.bucket.Without()
	name := w.someSmall(spoilt)
	if name == "" {
		return
	}
	whole, _ := book.Read(w.t.Context(), spoilt)
	before, text := reaches(whole), spoilt.Objects[name]
	spoilt.Objects[name] = buckettest.Stored{Content: []byte("{"), Modified: text.Modified}
	c, err := book.Read(w.t.Context(), spoilt)
	if err != nil || len(c.Unread) != 1 {
		w.fatal("%s is cut off: %v, %v", name, c.Unread, err)
	}
	r := retention{c}
	d, kept := r.retain(policy)
	if broken := r.breaks(policy, r.without(d.Names), kept); broken != "" || len(d.Held) != 1 {
		w.fatal("%s is cut off: retain %+v holds back %v: %s", name, policy, d.Held, broken)
	}
	if len(d.Names) > 0 {
		w.counts["deleted in spite of the unread"]++
	}
	_ = spoilt.Delete(w.t.Context(), d.Names...)
	spoilt.Objects[name] = text
	after, err := book.Read(w.t.Context(), spoilt)
	if err != nil {
		w.fatal("%v", err)
	}
	still := reaches(after)
	for _, r := range needed(policy, c, before, d) {
		own := r.history[len(r.history)-1].Term
		goes, of := slices.Contains(d.Names,
			r.backup.Folder()+format.FileBackup), name == format.TermFolder(own)+format.FileLineage
		known := of && len(c.Terms[own].TermHistory) > 0 // from another that goes on with it
		if name != r.backup.Folder()+format.FileBackup && !of || goes && known {
			continue
		}
		w.counts["of the unread"]++
		if !slices.ContainsFunc(still, func(s reach) bool { return s.covers(r) }) {
			w.fatal("%s was cut off, retain %+v removed %s, and %s leads no longer along %v to %s", name, policy,
				strings.Join(d.Names, " "), r.backup.ID, r.history, r.to)
		}
	}
}

package scrub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/naming"
	"toban.dev/internal/wal"
)

// listed finds what a listing shows already: what can't be understood, objects of backups that are not there, and WAL
// that is missing where it ought to be.
func (s *scrubbing) listed(ctx context.Context) error {
	for _, u := range s.catalogue.Unread {
		s.find(Finding{Name: u.Name, Problem: "can't be understood: " + u.Problem})
	}
	for _, b := range s.catalogue.Backups {
		if name := s.catalogue.Lost(b); name != "" {
			if err := s.confirm(ctx, s.lost(ctx, b, name)); err != nil {
				return err
			}
		}
	}
	for _, f := range Holes(s.catalogue.Catalogue, s.Now, s.Pinned) {
		s.find(f)
	}
	return nil
}

// lost says what is wrong with an object of a backup that is not there, or not of its size.
func (s *scrubbing) lost(ctx context.Context, b format.Backup, name string) error {
	for _, o := range b.Objects() {
		if b.Folder()+o.Name == name {
			_, err := book.ReadStored(ctx, s.Bucket, b.Folder(), o)
			return err
		}
	}
	return &format.ObjectError{Name: name, What: format.Missing}
}

// list is what a listing of an archive says of what is broken in it.
type list struct{ book.Catalogue }

// Holes are WAL that is not there though a backup needs it, or leads on over it by the rules of retention. Not among
// them are gaps that are noted, and those at the end of the archive, where what comes before may still be on its way.
func Holes(c book.Catalogue, now time.Time, pinned []string) []Finding {
	l, all := list{c}, []Finding(nil)
	add := func(b format.Backup, gap format.Gap, words string) {
		if l.noted(gap) || l.writtenSince(gap, now.Add(-underWay)) {
			return
		}
		segment := format.SegmentAt(b.StopTimeline, gap.From)
		all = append(all, Finding{
			Name:    format.TermFolder(b.Term) + segment.String(),
			Problem: fmt.Sprintf("missing, or of another term: the archive has no WAL %s, %s", gap, words),
			Newest:  l.leadsFromNewest(segment),
		})
	}
	usable := book.Restorable(l.AllWindows())
	for _, b := range l.Backups {
		history := l.TermHistoryOf(b, l.NewestTermHistory())
		if usable[b.ID] || l.Lost(b) != "" || len(history) == 0 {
			continue
		}
		if to, missing := l.Covered(history, b.StartLSN); to < b.StopLSN {
			if missing == nil {
				missing = &format.Gap{From: to, To: b.StopLSN}
			}
			add(b, *missing, "which backup "+b.ID+" needs")
		} else if b.Parent != "" && !l.has(b.Parent) {
			all = append(all, Finding{Name: format.FolderBase + b.Parent + "/" + format.FileBackup,
				Problem: "missing: backup " + b.ID + " consists of it too", Newest: l.touchesNewest(b.Folder())})
		}
	}
	for _, branch := range l.Branches() {
		for _, w := range l.Windows(branch.Histories[0]) {
			if last := w.Backups[len(w.Backups)-1]; w.Missing != nil && !l.allStandAlone(w.Backups, pinned) {
				add(last, *w.Missing, "which leads on from backup "+last.ID)
			}
		}
	}
	return all
}

func (l list) has(id string) bool {
	return slices.ContainsFunc(l.Backups, func(b format.Backup) bool { return b.ID == id })
}

// noted says that a gap has a note: then it was lost before it was archived.
func (l list) noted(gap format.Gap) bool {
	for _, t := range l.Terms {
		for _, o := range t.Gaps {
			note, ok := format.ParseGap(o.Name[strings.LastIndexByte(o.Name, '/')+1:])
			if ok && note.From < gap.To && note.To > gap.From {
				return true
			}
		}
	}
	return false
}

// writtenSince says that the WAL behind a gap was written after a moment.
func (l list) writtenSince(gap format.Gap, at time.Time) bool {
	for _, t := range l.Terms {
		for _, w := range t.WAL {
			if format.NumberAt(gap.To) == w.Segment.Number && w.Object.Modified.After(at) {
				return true
			}
		}
	}
	return false
}

// allStandAlone says that retention may have kept each of these backups without the WAL that leads on from it.
func (l list) allStandAlone(backups []format.Backup, pinned []string) bool {
	return !slices.ContainsFunc(backups,
		func(b format.Backup) bool { return !l.mayStandAlone(b, pinned, len(l.Backups)) })
}

// mayStandAlone follows the children of a backup, no more generations of them than there are backups.
func (l list) mayStandAlone(b format.Backup, pinned []string, generations int) bool {
	if b.Kind() != naming.TriggerSchedule || slices.Contains(pinned, b.ID) {
		return true
	}
	children := 0
	for _, child := range l.Backups {
		if child.Parent != b.ID || generations == 0 {
			continue
		}
		if !l.mayStandAlone(child, pinned, generations-1) {
			return false
		}
		children++
	}
	return children > 0
}

// newest is the last backup that the newest leader's WAL goes on from, nil for none.
func (l list) newest() *format.Backup {
	history := l.NewestTermHistory()
	for i := range slices.Backward(l.Backups) {
		if l.In(l.Backups[i], history) {
			return &l.Backups[i]
		}
	}
	return nil
}

// touchesNewest says that without an object the newest backup can't be restored, or not to the end of the archive.
func (l list) touchesNewest(name string) bool {
	if id, ok := format.BackupOf(name); ok {
		b := l.newest()
		for n := 0; b != nil && b.ID != id && n < len(l.Backups); n++ {
			b = l.find(b.Parent)
		}
		return b != nil && b.ID == id
	}
	_, rest, _ := format.ParseTerm(name)
	plain, _, _ := format.PlainName(rest)
	piece, ok := format.ParsePiece(plain)
	return ok && l.leadsFromNewest(piece.Segment)
}

// find is the backup of an id, nil for none.
func (l list) find(id string) *format.Backup {
	i := slices.IndexFunc(l.Backups, func(b format.Backup) bool { return b.ID == id })
	if id == "" || i < 0 {
		return nil
	}
	return &l.Backups[i]
}

// leadsFromNewest says that a segment is none from before the newest backup.
func (l list) leadsFromNewest(s wal.Segment) bool {
	newest := l.newest()
	return newest != nil && s.End() > newest.StartLSN
}

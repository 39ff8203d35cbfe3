package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
		if name := s.catalogue.lost(b); name != "" {
			if err := s.confirm(ctx, s.lost(ctx, b, name)); err != nil {
				return err
			}
		}
	}
	for _, f := range s.catalogue.holes(s.Now, s.Pinned) {
		s.find(f)
	}
	return nil
}

// lost says what is wrong with an object of a backup that is not there, or not of its size.
func (s *scrubbing) lost(ctx context.Context, b Backup, name string) error {
	for _, o := range b.objects() {
		if b.folder()+o.Name == name {
			_, err := readStored(ctx, s.Bucket, b.folder(), o)
			return err
		}
	}
	return &ObjectError{Name: name, What: Missing}
}

// holes are WAL that is not there though a backup needs it, or leads on over it by the rules of retention. Not among
// them are gaps that are noted, and those at the end of the archive, where what comes before may still be on its way.
func (c Catalogue) holes(now time.Time, pinned []string) []Finding {
	var all []Finding
	add := func(b Backup, gap Gap, words string) {
		if c.noted(gap) || c.writtenSince(gap, now.Add(-slack)) {
			return
		}
		segment := segmentAt(b.StopTimeline, gap.From)
		all = append(all, Finding{
			Name:    TermFolder(b.Term) + segment.String(),
			Problem: fmt.Sprintf("missing, or of another term: the archive has no WAL %s, %s", gap, words),
			Newest:  c.leadsFromNewest(segment),
		})
	}
	usable := restorable(c.allWindows())
	for _, b := range c.Backups {
		history := c.termHistoryOf(b, c.NewestTermHistory())
		if usable[b.ID] || c.lost(b) != "" || len(history) == 0 {
			continue
		}
		if to, missing := c.Covered(history, b.StartLSN); to < b.StopLSN {
			if missing == nil {
				missing = &Gap{to, b.StopLSN}
			}
			add(b, *missing, "which backup "+b.ID+" needs")
		} else if b.Parent != "" && !c.has(b.Parent) {
			all = append(all, Finding{Name: FolderBase + b.Parent + "/" + FileBackup,
				Problem: "missing: backup " + b.ID + " consists of it too", Newest: c.touchesNewest(b.folder())})
		}
	}
	for _, branch := range c.Branches() {
		for _, w := range c.windows(branch.histories[0]) {
			if last := w.Backups[len(w.Backups)-1]; w.Missing != nil && !c.allStandAlone(w.Backups, pinned) {
				add(last, *w.Missing, "which leads on from backup "+last.ID)
			}
		}
	}
	return all
}

func (c Catalogue) has(id string) bool {
	return slices.ContainsFunc(c.Backups, func(b Backup) bool { return b.ID == id })
}

// noted says that a gap has a note: then it was lost before it was archived.
func (c Catalogue) noted(gap Gap) bool {
	for _, t := range c.Terms {
		for _, o := range t.Gaps {
			note, ok := ParseGap(o.Name[strings.LastIndexByte(o.Name, '/')+1:])
			if ok && note.From < gap.To && note.To > gap.From {
				return true
			}
		}
	}
	return false
}

// writtenSince says that the WAL behind a gap was written after a moment.
func (c Catalogue) writtenSince(gap Gap, at time.Time) bool {
	for _, t := range c.Terms {
		for _, w := range t.WAL {
			if numberAt(gap.To) == w.Segment.Number && w.Object.Modified.After(at) {
				return true
			}
		}
	}
	return false
}

// allStandAlone says that retention may have kept each of these backups without the WAL that leads on from it.
func (c Catalogue) allStandAlone(backups []Backup, pinned []string) bool {
	return !slices.ContainsFunc(backups, func(b Backup) bool { return !c.mayStandAlone(b, pinned, len(c.Backups)) })
}

// mayStandAlone follows the children of a backup, no more generations of them than there are backups.
func (c Catalogue) mayStandAlone(b Backup, pinned []string, generations int) bool {
	if b.kind() != naming.TriggerSchedule || slices.Contains(pinned, b.ID) {
		return true
	}
	children := 0
	for _, child := range c.Backups {
		if child.Parent != b.ID || generations == 0 {
			continue
		}
		if !c.mayStandAlone(child, pinned, generations-1) {
			return false
		}
		children++
	}
	return children > 0
}

// newest is the last backup that the newest leader's WAL goes on from, nil for none.
func (c Catalogue) newest() *Backup {
	history := c.NewestTermHistory()
	for i := range slices.Backward(c.Backups) {
		if c.In(c.Backups[i], history) {
			return &c.Backups[i]
		}
	}
	return nil
}

// touchesNewest says that without an object the newest backup can't be restored, or not to the end of the archive.
func (c Catalogue) touchesNewest(name string) bool {
	if id, ok := backupOf(name); ok {
		b := c.newest()
		for n := 0; b != nil && b.ID != id && n < len(c.Backups); n++ {
			b = c.find(b.Parent)
		}
		return b != nil && b.ID == id
	}
	_, rest, _ := ParseTerm(name)
	plain, _, _ := PlainName(rest)
	piece, ok := ParsePiece(plain)
	return ok && c.leadsFromNewest(piece.Segment)
}

// find is the backup of an id, nil for none.
func (c Catalogue) find(id string) *Backup {
	i := slices.IndexFunc(c.Backups, func(b Backup) bool { return b.ID == id })
	if id == "" || i < 0 {
		return nil
	}
	return &c.Backups[i]
}

// leadsFromNewest says that a segment is none from before the newest backup.
func (c Catalogue) leadsFromNewest(s wal.Segment) bool {
	newest := c.newest()
	return newest != nil && s.End() > newest.StartLSN
}

// backupOf is the backup in whose folder an object lies.
func backupOf(name string) (id string, ok bool) {
	in, ok := strings.CutPrefix(name, FolderBase)
	if !ok {
		return "", false
	}
	id, _, ok = strings.Cut(in, "/")
	return id, ok
}

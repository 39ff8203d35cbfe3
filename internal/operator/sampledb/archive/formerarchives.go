package archive

import (
	"cmp"
	"slices"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// workingSince is since when a backup can be taken into the present archive, which has worked since a time: not before
// the former one was left, whose first backup may be named after that time.
func (s *archiveTopic) workingSince(at time.Time) time.Time {
	b := s.DB.Status.Backup
	if b == nil {
		return at
	}
	if b.StoreSince != nil && b.StoreSince.After(at) {
		at = b.StoreSince.Time
	}
	if len(b.Former) > 0 && b.Former[0].Until != nil && b.Former[0].Until.After(at) {
		at = b.Former[0].Until.Time
	}
	return at
}

// storeChanged is since when the archive is in another store than before, zero where it is not, or where a backup since
// is complete there.
func (s *archiveTopic) storeChanged() time.Time {
	status := s.DB.Status.Backup
	if status == nil || status.StoreSince == nil || s.StoreLeft() {
		return time.Time{}
	}
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; s.InArchive(b) && !dueAt(b).Before(status.StoreSince.Time) {
			return time.Time{}
		}
	}
	return status.StoreSince.Time
}

// former are the former archives, and what is spared there.
func (s *archiveTopic) former() (out []desired.Former) {
	for _, f := range s.Archives().Former {
		out = append(out, desired.Former{FormerArchive: f, Spared: s.spared(f.Path)})
	}
	return append(out, s.forgotten(out)...)
}

// forgotten are former archives that the status does not have any more, and of which backups are pinned: where the
// first store was lost or is another one by now, the second one may have the last of them.
func (s *archiveTopic) forgotten(known []desired.Former) (out []desired.Former) {
	has := func(path string) bool {
		return slices.ContainsFunc(slices.Concat(known, out), func(f desired.Former) bool { return f.Path == path })
	}
	first := naming.ArchivePath(s.DB.Namespace, s.DB.Name, string(s.DB.UID))
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if !b.Spec.Keep || b.Status.ID == "" || !s.OfFormer(b) || has(b.Status.Archive.Path) {
			continue
		}
		path := b.Status.Archive.Path
		if of, _ := naming.FirstArchivePath(path); of == first {
			out = append(out, desired.Former{FormerArchive: v1.FormerArchive{Path: path,
				Version: s.VersionOfArchive(path)}, Spared: s.spared(path), Forgotten: true})
		}
	}
	slices.SortFunc(out, func(a, b desired.Former) int { return cmp.Compare(b.Version, a.Version) })
	return out
}

// looked are former archives after retention has looked at some: one that is empty is forgotten.
func looked(former, seen []v1.FormerArchive) (out []v1.FormerArchive) {
	for _, f := range former {
		i := slices.IndexFunc(seen, func(s v1.FormerArchive) bool { return s.Path == f.Path })
		switch {
		case i < 0:
			out = append(out, f)
		case !seen[i].Empty:
			f.Retention = seen[i].Retention
			if len(seen[i].Windows) > 0 {
				f.Windows = seen[i].Windows
			}
			out = append(out, f)
		}
	}
	return out
}

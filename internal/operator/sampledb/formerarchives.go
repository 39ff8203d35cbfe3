package sampledb

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// Each major version of PostgreSQL has an archive of its own (docs/archive.md, "Former archives"). Which one is
// the present follows from the version that runs, and the one that the SampleDB has begun with. So an operator that
// ends between any two writes, or an upgrade that is taken back, comes to the same folder.

// firstMajor is the major version that the SampleDB has begun with, 0 for the one that runs: as the status says, else
// the config of the agents, else the backups in the first folder.
func (s *archiveFacts) firstMajor(old protocol.Config) int {
	if known := cmp.Or(int(s.db.Status.FirstVersion), old.FirstMajor); known > 0 {
		return known
	}
	first := naming.ArchivePath(s.db.Namespace, s.db.Name, string(s.db.UID))
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		if major := desired.MajorOf(b.Status.ServerVersion); major > 0 && b.Status.Archive != nil &&
			b.Status.Archive.Path == first {
			return major
		}
	}
	return old.Major
}

// firstVersion is the same for the status.
func (s *archiveFacts) firstVersion() int32 {
	return int32(cmp.Or(s.config.FirstMajor, s.config.Major)) //nolint:gosec // it is from 15 to some tens
}

// archiveLeft says that what is on record in the status is about an archive that is the present no more.
func (s *archiveFacts) archiveLeft() bool {
	b := s.db.Status.Backup
	return b != nil && b.Archive != "" && b.Archive != s.archivePath() || s.storeLeft()
}

// storeLeft says that what is on record in the status is about another store than the one that is used now.
func (s *archiveFacts) storeLeft() bool {
	recorded, is := s.recordedStore(), desired.PresentStore(s.db)
	return recorded != "" && is != "" && recorded != is
}

// recordedStore is the store that the status is about, "" where that is not known. A former version has not noted it:
// it is that of the last backup then.
func (s *archiveFacts) recordedStore() string {
	status := s.db.Status.Backup
	if status == nil || status.Store != "" {
		return ptr.Deref(status, v1.BackupStatus{}).Store
	}
	for i := range s.seen.backups {
		if b := &s.seen.backups[i]; b.Name == status.LastBackup {
			return desired.StoreOf(b, s.db.Name)
		}
	}
	return ""
}

// ofFormer says that a backup is, or was to be, in another archive than the present one.
func (s *archiveFacts) ofFormer(b *v1.DatabaseBackup) bool {
	return b.Status.Archive != nil && !s.isIn(b, s.archivePath())
}

// workingSince is since when a backup can be taken into the present archive, which has worked since a time: not before
// the former one was left, whose first backup may be named after that time.
func (s *archiveTopic) workingSince(at time.Time) time.Time {
	b := s.db.Status.Backup
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
	status := s.db.Status.Backup
	if status == nil || status.StoreSince == nil || s.storeLeft() {
		return time.Time{}
	}
	for i := range s.seen.backups {
		if b := &s.seen.backups[i]; s.inArchive(b) && !dueAt(b).Before(status.StoreSince.Time) {
			return time.Time{}
		}
	}
	return status.StoreSince.Time
}

// archives is what the status has said of the archive, or where another one is the present by now, what remains of
// that.
func (s *archiveFacts) archives() v1.BackupStatus {
	now := v1.BackupStatus{Archive: s.archivePath(), Store: desired.PresentStore(s.db)}
	now.Version = int32(s.config.Major) //nolint:gosec // it is from 15 to some tens
	was := s.db.Status.Backup
	switch {
	case was == nil:
		now.Former = s.rediscovered()
		return now
	case s.storeLeft(): // what it has is looked after no more
		at := metav1.NewTime(s.now).Rfc3339Copy()
		now.StoreSince, now.Former = &at, s.rediscovered()
		return now
	case !s.archiveLeft():
		out := *was.DeepCopy()
		out.Archive, out.Version, out.Store = now.Archive, now.Version, now.Store
		return out
	}
	since := s.db.CreationTimestamp
	if len(was.Former) > 0 && was.Former[0].Until != nil {
		since = *was.Former[0].Until
	}
	left := v1.FormerArchive{Path: was.Archive, Version: s.versionOfArchive(was.Archive), Since: &since}
	now.StoreSince = was.StoreSince
	return turnOver(*was, now, left, s.now)
}

// versionOfArchive is the major version of one of the SampleDB's archives.
func (s *archiveFacts) versionOfArchive(path string) int32 {
	if _, major := naming.FirstArchivePath(path); major > 0 {
		return int32(major) //nolint:gosec // it is from 15 to some tens
	}
	return s.firstVersion()
}

// turnOver is what the status says when the archive is another one. The one that is left becomes a former one if
// anything was written there. One that was a former one, because an upgrade was taken back, is the present again.
func turnOver(was, now v1.BackupStatus, left v1.FormerArchive, at time.Time) v1.BackupStatus {
	now.LastRetentionAt = was.LastRetentionAt
	if was.ArchivedLSN != "" || was.LastBackup != "" || len(was.Windows) > 0 {
		until := metav1.NewTime(at).Rfc3339Copy()
		left.Until, left.Windows = &until, closed(was.Windows, was.Latest, was.ArchivedLSN)
		now.Former = append(now.Former, left)
	}
	for _, f := range was.Former {
		if f.Path != now.Archive {
			now.Former = append(now.Former, *f.DeepCopy())
			continue
		}
		now.Windows = f.Windows
		if len(f.Windows) > 0 {
			now.Earliest, now.Latest = f.Windows[0].Earliest, f.Windows[0].Latest
			now.Windows[0].Latest, now.Windows[0].LatestLSN = nil, ""
		}
	}
	return now
}

// closed are windows of which none goes on.
func closed(windows []v1.RestoreWindow, latest *metav1.Time, lsn string) []v1.RestoreWindow {
	out := slices.Clone(windows)
	for i := range out {
		if out[i].Latest == nil {
			out[i].Latest, out[i].LatestLSN = latest, lsn
		}
	}
	return out
}

// rediscovered are the former archives of which the status has nothing: those of backups, and the first. One that is
// empty is forgotten as soon as retention has looked.
func (s *archiveFacts) rediscovered() []v1.FormerArchive {
	newest, now := map[string]*v1.DatabaseBackup{}, desired.PresentStore(s.db)
	first := naming.ArchivePath(s.db.Namespace, s.db.Name, string(s.db.UID))
	if s.archivePath() != first {
		newest[first] = nil
	}
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		if !s.ofFormer(b) || !complete(b) || desired.StoreOf(b, s.db.Name) != now {
			continue
		}
		path := b.Status.Archive.Path
		of, _ := naming.FirstArchivePath(path)
		if of == first && (newest[path] == nil || newest[path].Status.CompletedAt.Before(b.Status.CompletedAt)) {
			newest[path] = b
		}
	}
	var out []v1.FormerArchive
	for path, b := range newest {
		f := v1.FormerArchive{Path: path, Version: s.versionOfArchive(path)}
		if b != nil {
			f.Windows = closed(b.Status.Windows, b.Status.CompletedAt, b.Status.StopLSN)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b v1.FormerArchive) int { return cmp.Compare(b.Version, a.Version) })
	return out
}

// former are the former archives, and what is spared there.
func (s *archiveTopic) former() (out []desired.Former) {
	for _, f := range s.archives().Former {
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
	first := naming.ArchivePath(s.db.Namespace, s.db.Name, string(s.db.UID))
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		if !b.Spec.Keep || b.Status.ID == "" || !s.ofFormer(b) || has(b.Status.Archive.Path) {
			continue
		}
		path := b.Status.Archive.Path
		if of, _ := naming.FirstArchivePath(path); of == first {
			out = append(out, desired.Former{FormerArchive: v1.FormerArchive{Path: path,
				Version: s.versionOfArchive(path)}, Spared: s.spared(path), Forgotten: true})
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

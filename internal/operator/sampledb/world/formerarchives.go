package world

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

// FirstMajor is the major version that the SampleDB has begun with, 0 for the one that runs: as the status says, else
// the config of the agents, else the backups in the first folder.
func (s *archiveFacts) FirstMajor(old protocol.Config) int {
	if known := cmp.Or(int(s.DB.Status.FirstVersion), old.FirstMajor); known > 0 {
		return known
	}
	first := naming.ArchivePath(s.DB.Namespace, s.DB.Name, string(s.DB.UID))
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if major := desired.MajorOf(b.Status.ServerVersion); major > 0 && b.Status.Archive != nil &&
			b.Status.Archive.Path == first {
			return major
		}
	}
	return old.Major
}

// FirstVersion is the same for the status.
func (s *archiveFacts) FirstVersion() int32 {
	return int32(cmp.Or(s.Config.FirstMajor, s.Config.Major)) //nolint:gosec // it is from 15 to some tens
}

// ArchiveLeft says that what is on record in the status is about an archive that is the present no more.
func (s *archiveFacts) ArchiveLeft() bool {
	b := s.DB.Status.Backup
	return b != nil && b.Archive != "" && b.Archive != s.ArchivePath() || s.StoreLeft()
}

// StoreLeft says that what is on record in the status is about another store than the one that is used now.
func (s *archiveFacts) StoreLeft() bool {
	recorded, is := s.recordedStore(), desired.PresentStore(s.DB)
	return recorded != "" && is != "" && recorded != is
}

// recordedStore is the store that the status is about, "" where that is not known. A former version has not noted it:
// it is that of the last backup then.
func (s *archiveFacts) recordedStore() string {
	status := s.DB.Status.Backup
	if status == nil || status.Store != "" {
		return ptr.Deref(status, v1.BackupStatus{}).Store
	}
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; b.Name == status.LastBackup {
			return desired.StoreOf(b, s.DB.Name)
		}
	}
	return ""
}

// OfFormer says that a backup is, or was to be, in another archive than the present one.
func (s *archiveFacts) OfFormer(b *v1.DatabaseBackup) bool {
	return b.Status.Archive != nil && !s.IsIn(b, s.ArchivePath())
}

// Archives is what the status has said of the archive, or where another one is the present by now, what remains of
// that.
func (s *archiveFacts) Archives() v1.BackupStatus {
	now := v1.BackupStatus{Archive: s.ArchivePath(), Store: desired.PresentStore(s.DB)}
	now.Version = int32(s.Config.Major) //nolint:gosec // it is from 15 to some tens
	was := s.DB.Status.Backup
	switch {
	case was == nil:
		now.Former = s.rediscovered()
		return now
	case s.StoreLeft(): // what it has is looked after no more
		at := metav1.NewTime(s.Now).Rfc3339Copy()
		now.StoreSince, now.Former = &at, s.rediscovered()
		return now
	case !s.ArchiveLeft():
		out := *was.DeepCopy()
		out.Archive, out.Version, out.Store = now.Archive, now.Version, now.Store
		return out
	}
	since := s.DB.CreationTimestamp
	if len(was.Former) > 0 && was.Former[0].Until != nil {
		since = *was.Former[0].Until
	}
	left := v1.FormerArchive{Path: was.Archive, Version: s.VersionOfArchive(was.Archive), Since: &since}
	now.StoreSince = was.StoreSince
	return turnOver(*was, now, left, s.Now)
}

// VersionOfArchive is the major version of one of the SampleDB's archives.
func (s *archiveFacts) VersionOfArchive(path string) int32 {
	if _, major := naming.FirstArchivePath(path); major > 0 {
		return int32(major) //nolint:gosec // it is from 15 to some tens
	}
	return s.FirstVersion()
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
	newest, now := map[string]*v1.DatabaseBackup{}, desired.PresentStore(s.DB)
	first := naming.ArchivePath(s.DB.Namespace, s.DB.Name, string(s.DB.UID))
	if s.ArchivePath() != first {
		newest[first] = nil
	}
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if !s.OfFormer(b) || !Complete(b) || desired.StoreOf(b, s.DB.Name) != now {
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
		f := v1.FormerArchive{Path: path, Version: s.VersionOfArchive(path)}
		if b != nil {
			f.Windows = closed(b.Status.Windows, b.Status.CompletedAt, b.Status.StopLSN)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b v1.FormerArchive) int { return cmp.Compare(b.Version, a.Version) })
	return out
}

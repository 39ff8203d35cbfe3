package archive

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// archiveTopic writes what backups start from, and says what the archive has.
type archiveTopic struct {
	base
	// retained is what the Job that removes what is not to be kept has said, nil where there is none, or none yet.
	retained *retained
	// retentionWaits is what keeps the Pod of that Job from running, "" where nothing does.
	retentionWaits string
	// RetentionNext is when something is to be said or done about a Job that does not begin, zero for never.
	RetentionNext time.Time
}

// ApplyArchive writes what the backups start from, and the server of an archive that lies on a volume.
func (s *archiveTopic) ApplyArchive(ctx context.Context) error {
	if s.Backup != nil {
		manifest := desired.Manifest(s.DB, s.Credentials.Credentials(s.DB, s.Password.Epoch))
		settings, err := desired.BackupConfigMap(
			s.DB, s.Config, manifest, s.spared(s.ArchivePath()), s.former()...)
		if err != nil {
			return err
		}
		for _, object := range []client.Object{settings, desired.BackupPolicy(s.DB, s.Settings)} {
			if err := s.Apply(ctx, s.DB, object); err != nil {
				return err
			}
		}
	}
	if !desired.OnVolume(s.DB) {
		return s.StopArchive(ctx)
	}
	claim, err := world.Find(ctx, s.Client, s.DB, naming.Archive(s.DB.Name), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	want, err := desired.ArchiveClaim(s.DB, claim)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	for _, object := range []client.Object{
		want, desired.ArchiveDeployment(s.DB, s.Settings), desired.ArchiveService(s.DB), desired.ArchivePolicy(s.DB),
	} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	return nil
}

// sparedSnapshots are those of volumes that need WAL of one of the archives.
func (s *archiveTopic) sparedSnapshots(path string) (out []protocol.Snapshot) {
	for i := range s.Seen.Snapshots {
		b := &s.Seen.Snapshots[i]
		if x := volumes.Snapshot(b); x != nil && b.Status.Archive != nil && b.Status.Archive.Path == path {
			x.Label = "" // retention needs to know of WAL alone
			out = append(out, *x)
		}
	}
	slices.SortFunc(out, func(a, b protocol.Snapshot) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// spared are the backups that are pinned, and those that are being verified or restored, here or into another SampleDB
// of the namespace, in one of its archives. Whichever store it was taken into: the second one, or a copy of the
// archive, has it by the same id, and an id that is not there pins nothing. One that the first store has lost is pinned
// all the same.
func (s *archiveTopic) spared(path string) desired.Spared {
	var out desired.Spared
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if b.Status.Archive == nil || b.Status.ID == "" || b.Status.Archive.Path != path {
			continue
		}
		if b.Spec.Keep {
			out.Pinned = append(out.Pinned, b.Status.ID)
		}
		if !world.Complete(b) {
			continue
		}
		c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionVerified)
		if c != nil && (c.Reason == v1.ReasonVerifying || c.Reason == v1.ReasonQueued) {
			out.InUse = append(out.InUse, b.Status.ID)
		}
	}
	out.Snapshots = s.sparedSnapshots(path)
	for _, r := range s.Seen.Restores {
		if r.Archive == path && r.Backup != "" && r.CompletedAt == nil && r.PreparedAt == nil {
			out.InUse = append(out.InUse, r.Backup)
		}
	}
	if path == s.ArchivePath() {
		out.InUse = append(out.InUse, s.RehearsedBackups()...)
	}
	slices.Sort(out.Pinned)
	slices.Sort(out.InUse)
	out.InUse = slices.Compact(out.InUse)
	return out
}

// StopArchive removes the server of a volume that is not used any more. The volume stays.
func (s *archiveTopic) StopArchive(ctx context.Context) error {
	server, err := world.Find(ctx, s.Client, s.DB, naming.Archive(s.DB.Name), &appsv1.Deployment{})
	if err != nil || server == nil || server.DeletionTimestamp != nil || !metav1.IsControlledBy(server, s.DB) {
		return err
	}
	return s.DeleteObject(ctx, server)
}

// archiveNewsEvery is how often the status says how far the archive has come while all goes well. It comes
// further with every commit, and a status that said so each time would be a write to the API server that nobody
// needs: the metrics have it.
const archiveNewsEvery = 10 * time.Minute

// ArchiveNews is what the status says of the archive: what is new, or while all goes on as before, what it said last.
func ArchiveNews(old, now v1.SampleDBStatus, at time.Time) *v1.BackupStatus {
	was, is := old.Backup, now.Backup
	if was == nil || is == nil || was.Latest == nil || at.Sub(was.Latest.Time) >= archiveNewsEvery ||
		was.Archive != is.Archive || was.Store != is.Store ||
		world.Turned(old, now, v1.ConditionArchiving) != nil || firstAfterBackup(was, is) {
		return is
	}
	out := is.DeepCopy()
	out.ArchivedLSN, out.Latest, out.LagBytes, out.LagSeconds = was.ArchivedLSN, was.Latest,
		was.LagBytes, was.LagSeconds
	return out
}

// firstAfterBackup says that the archive goes beyond the end of a new backup, and what was said of it last does not:
// from Earliest to Latest would be no time at all.
func firstAfterBackup(was, is *v1.BackupStatus) bool {
	return is.Earliest != nil && was.Latest.Before(is.Earliest) && !is.Latest.Before(is.Earliest)
}

// latestAfter is up to when can be restored: at least to the end of the backup that the window begins with, which is
// complete only when all WAL up to its end is archived.
func latestAfter(latest, earliest *metav1.Time) *metav1.Time {
	if latest.Before(earliest) {
		return earliest
	}
	return latest
}

// BackupStatus is what the status says of the archive, nil where there is none.
func (s *archiveTopic) BackupStatus() *v1.BackupStatus {
	if s.Backup == nil {
		return nil
	}
	out := s.Archives() // what is not known any more is not gone
	out.NextBackupAt, out.Scrub, out.Copy = nil, s.Scrub(), nil
	if state := s.ArchiveState(); state != nil {
		if state.LSN != "" && state.LSN != out.ArchivedLSN {
			at := metav1.NewTime(s.Now.Add(-time.Duration(state.LagSeconds * float64(time.Second)))).Rfc3339Copy()
			out.ArchivedLSN, out.Latest = state.LSN, &at
		}
		out.LagBytes, out.LagSeconds = int64(min(state.LagBytes, math.MaxInt64)), int64(state.LagSeconds)
	}
	if !s.Planned.Next.IsZero() {
		at := metav1.NewTime(s.Planned.Next).Rfc3339Copy()
		out.NextBackupAt = &at
	}
	var last *v1.DatabaseBackup
	if b := s.LastBackup(); b != nil && (out.LastBackupAt == nil || out.LastBackupAt.Before(b.Status.CompletedAt)) {
		last = b
		out.LastBackup, out.LastBackupAt, out.Earliest = b.Name, b.Status.CompletedAt, b.Status.Earliest
		if len(b.Status.Windows) > 0 { // a backup that could not look says none
			out.Windows = b.Status.Windows
		}
		out.Keys = b.Status.Keys
		out.Former = looked(out.Former, b.Status.Former)
	}
	s.setRetained(&out, last)
	out.Latest = latestAfter(out.Latest, out.Earliest)
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		v := b.Status.Verification
		verified := v != nil && meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionVerified)
		if verified && !s.OfFormer(b) && (out.LastVerifiedAt == nil || out.LastVerifiedAt.Before(v.CompletedAt)) {
			out.LastVerified, out.LastVerifiedAt = b.Name, v.CompletedAt
		}
	}
	return &out
}

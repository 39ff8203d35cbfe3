package sampledb

import (
	"context"
	"fmt"
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
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// archiveTopic writes what backups start from, and says what the archive has.
type archiveTopic struct {
	archiveBase
	// retained is what the Job that removes what is not to be kept has said, nil where there is none, or none yet.
	retained *retained
}

// archiveBehind is for how much longer than it may WAL waits for the archive before it is said to be behind.
const archiveBehind = time.Minute

// applyArchive writes what the backups start from, and the server of an archive that lies on a volume.
func (s *archiveTopic) applyArchive(ctx context.Context) error {
	if s.backup != nil {
		manifest := desired.Manifest(s.db, s.Credentials.Credentials(s.db, s.password.Epoch))
		settings, err := desired.BackupConfigMap(
			s.db, s.config, manifest, s.spared(s.archivePath()), s.former()...)
		if err != nil {
			return err
		}
		for _, object := range []client.Object{settings, desired.BackupPolicy(s.db, s.Settings)} {
			if err := s.apply(ctx, s.db, object); err != nil {
				return err
			}
		}
	}
	if !desired.OnVolume(s.db) {
		return s.stopArchive(ctx)
	}
	claim, err := find(ctx, s.Client, s.db, naming.Archive(s.db.Name), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	want, err := desired.ArchiveClaim(s.db, claim)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	for _, object := range []client.Object{
		want, desired.ArchiveDeployment(s.db, s.Settings), desired.ArchiveService(s.db), desired.ArchivePolicy(s.db),
	} {
		if err := s.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	return nil
}

// sparedSnapshots are those of volumes that need WAL of one of the archives.
func (s *archiveTopic) sparedSnapshots(path string) (out []protocol.Snapshot) {
	for i := range s.seen.snapshots {
		b := &s.seen.snapshots[i]
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
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		if b.Status.Archive == nil || b.Status.ID == "" || b.Status.Archive.Path != path {
			continue
		}
		if b.Spec.Keep {
			out.Pinned = append(out.Pinned, b.Status.ID)
		}
		if !complete(b) {
			continue
		}
		c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionVerified)
		if c != nil && (c.Reason == v1.ReasonVerifying || c.Reason == v1.ReasonQueued) {
			out.InUse = append(out.InUse, b.Status.ID)
		}
	}
	out.Snapshots = s.sparedSnapshots(path)
	for _, r := range s.seen.restores {
		if r.Archive == path && r.Backup != "" && r.CompletedAt == nil && r.PreparedAt == nil {
			out.InUse = append(out.InUse, r.Backup)
		}
	}
	if path == s.archivePath() {
		out.InUse = append(out.InUse, s.rehearsedBackups()...)
	}
	slices.Sort(out.Pinned)
	slices.Sort(out.InUse)
	out.InUse = slices.Compact(out.InUse)
	return out
}

// stopArchive removes the server of a volume that is not used any more. The volume stays.
func (s *archiveTopic) stopArchive(ctx context.Context) error {
	server, err := find(ctx, s.Client, s.db, naming.Archive(s.db.Name), &appsv1.Deployment{})
	if err != nil || server == nil || server.DeletionTimestamp != nil || !metav1.IsControlledBy(server, s.db) {
		return err
	}
	return s.deleteObject(ctx, server)
}

// archiveState is what the primary says of its archive, nil where that is not known: an agent that has just been told
// of another archive may still say how far the former one is.
func (s *archiveFacts) archiveState() *protocol.ArchiveStatus {
	state := s.seen.answers[s.primary()].Archive
	if state != nil && state.Place != "" && s.config.Archive != nil && state.Place != s.config.Archive.Place() {
		return nil
	}
	return state
}

// archiving is true when the WAL reaches the archive.
func (s *archiveFacts) archiving() verdict {
	primary, state := s.primary(), s.archiveState()
	switch {
	case s.backup == nil:
		return no(v1.ReasonNoArchive, "spec.backup.none: there is no archive and no backup. Data that is deleted "+
			"or changed by mistake, or lost with the volumes, can't be restored")
	case s.stop.Down():
		return s.archivingStopped()
	case primary == "" && len(s.silent()) > 0:
		return unknown("the agents could not be asked")
	case primary == "":
		return no(v1.ReasonArchiveStarting, "waits for a primary")
	case state == nil:
		return no(v1.ReasonArchiveStarting, primary+" has not reported the state of its archive yet")
	case state.Reason == protocol.ArchiveTaken:
		return no(v1.ReasonArchiveTaken, state.Error)
	case state.Reason == protocol.ArchiveAhead:
		return no(v1.ReasonArchiveAhead, state.Error+". To get back what it has lost: "+bringBack(s.db.Name)+
			". To continue with the present data, give spec.backup.store another prefix")
	case state.Reason == protocol.ArchiveUnfit:
		return no(v1.ReasonArchiveStoreUnfit, state.Error)
	case state.Reason == protocol.ArchiveFull:
		return no(v1.ReasonArchiveFull, state.Error+": give the store more room, or keep less (spec.backup.retention)")
	case state.Reason != "":
		return no(v1.ReasonArchiveFailing, state.Error)
	case s.openGap() != "":
		return no(v1.ReasonArchiveGap, fmt.Sprintf("WAL %s is in no archive: a new base backup is taken", s.openGap()))
	case state.LSN == "":
		return no(v1.ReasonArchiveStarting, primary+" is finding the end of the archive")
	case state.LagSeconds > (s.backup.MaxLag.Duration + archiveBehind).Seconds():
		return no(v1.ReasonArchiveBehind, fmt.Sprintf("WAL has waited for the archive for longer than %.0f s",
			(s.backup.MaxLag.Duration+archiveBehind).Seconds()))
	}
	return yes(v1.ReasonArchiving, "the WAL reaches the archive as it is written")
}

// openGap is the gap that the primary knows of, "" where there is none or where a backup begins behind it.
func (s *archiveFacts) openGap() string {
	state := s.archiveState()
	if state == nil || state.Gap == "" {
		return ""
	}
	end, known := state.GapEndsAt()
	if !known {
		return state.Gap // better a backup too many
	}
	for _, b := range s.seen.backups {
		start, err := wal.ParseLSN(b.Status.StartLSN)
		if err == nil && start >= end && s.inArchive(&b) {
			return ""
		}
	}
	return state.Gap
}

// inArchive says that a backup is complete and in the archive of this very SampleDB.
func (s *archiveFacts) inArchive(b *v1.DatabaseBackup) bool {
	return complete(b) && s.isIn(b, s.archivePath())
}

// isIn says that a backup is, or was to be, in the folder of an archive in the store that is used now.
func (s *archiveFacts) isIn(b *v1.DatabaseBackup, path string) bool {
	return b.Status.Archive != nil && b.Status.Archive.Path == path &&
		desired.StoreOf(b, s.db.Name) == desired.PresentStore(s.db)
}

// complete says that a backup is, and has not been removed.
func complete(b *v1.DatabaseBackup) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete) && b.Status.ID != "" &&
		b.Status.Archive != nil
}

// archivePath is the folder of the archive of the major version that runs.
func (s *archiveFacts) archivePath() string {
	return desired.ArchivePath(s.db, desired.VersionsOf(s.config))
}

// archiveNewsEvery is how often the status says how far the archive has come while all goes well. It comes
// further with every commit, and a status that said so each time would be a write to the API server that nobody
// needs: the metrics have it.
const archiveNewsEvery = 10 * time.Minute

// archiveNews is what the status says of the archive: what is new, or while all goes on as before, what it said last.
func archiveNews(old, now v1.SampleDBStatus, at time.Time) *v1.BackupStatus {
	was, is := old.Backup, now.Backup
	if was == nil || is == nil || was.Latest == nil || at.Sub(was.Latest.Time) >= archiveNewsEvery ||
		was.Archive != is.Archive || was.Store != is.Store ||
		turned(old, now, v1.ConditionArchiving) != nil || firstAfterBackup(was, is) {
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

// backupStatus is what the status says of the archive, nil where there is none.
func (s *archiveTopic) backupStatus() *v1.BackupStatus {
	if s.backup == nil {
		return nil
	}
	out := s.archives() // what is not known any more is not gone
	out.NextBackupAt, out.Scrub, out.Copy = nil, s.scrub(), s.all.copyStatus()
	if state := s.archiveState(); state != nil {
		if state.LSN != "" && state.LSN != out.ArchivedLSN {
			at := metav1.NewTime(s.now.Add(-time.Duration(state.LagSeconds * float64(time.Second)))).Rfc3339Copy()
			out.ArchivedLSN, out.Latest = state.LSN, &at
		}
		out.LagBytes, out.LagSeconds = int64(min(state.LagBytes, math.MaxInt64)), int64(state.LagSeconds)
	}
	if !s.planned.next.IsZero() {
		at := metav1.NewTime(s.planned.next).Rfc3339Copy()
		out.NextBackupAt = &at
	}
	var last *v1.DatabaseBackup
	if b := s.lastBackup(); b != nil && (out.LastBackupAt == nil || out.LastBackupAt.Before(b.Status.CompletedAt)) {
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
	for i := range s.seen.backups {
		b := &s.seen.backups[i]
		v := b.Status.Verification
		verified := v != nil && meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionVerified)
		if verified && !s.ofFormer(b) && (out.LastVerifiedAt == nil || out.LastVerifiedAt.Before(v.CompletedAt)) {
			out.LastVerified, out.LastVerifiedAt = b.Name, v.CompletedAt
		}
	}
	return &out
}

package restore

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
)

// firstSnapshot is the backup by a snapshot of a volume that spec.restoreFrom names for a database which is not there
// yet, nil for none.
func (s *restoreTopic) firstSnapshot(ctx context.Context) (*v1.DatabaseBackup, error) {
	from := s.DB.Spec.RestoreFrom
	if from == nil || from.Backup == "" || s.Config.SystemIdentifier != "" ||
		s.DB.Status.Restore != nil && s.DB.Status.Restore.CompletedAt != nil {
		return nil, nil //nolint:nilnil // the volumes are made empty
	}
	backup, err := world.Find(ctx, s.Client, s.DB, from.Backup, &v1.DatabaseBackup{})
	if err != nil || backup == nil || !backup.BySnapshot() {
		return nil, err
	}
	return backup, nil
}

// MadeOf has the claim of the first instance's data, where it is not there yet, be made of the snapshot of a volume
// that the database is restored from. It waits for the backup to be complete: an empty volume would stay.
func (s *restoreTopic) MadeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if current := s.Seen.Claims[0]; current != nil {
		if name := current.Annotations[naming.AnnotationMadeOf]; name != "" && s.Config.SystemIdentifier == "" {
			volumes.NoteMadeOf(claim, name)
		}
		return nil
	}
	backup, err := s.firstSnapshot(ctx)
	if err != nil || backup == nil {
		return err
	}
	if err := usableSnapshot(backup); err != nil {
		s.Restored = world.No(v1.ReasonRestoreSourceNotFound, err.Error())
		return err
	}
	if err := largeEnough(backup, claim); err != nil {
		return err
	}
	volumes.MadeOf(claim, backup.Status.Snapshot.Name)
	return nil
}

// ofOtherSnapshot is the problem that the first volume has the data of a snapshot which is not wanted any more. No
// server may start with that: without the backup_label, it would take it for its own after a crash.
func (s *restoreTopic) ofOtherSnapshot(ctx context.Context) error {
	claim := s.Seen.Claims[0]
	if claim == nil || s.Config.SystemIdentifier != "" || claim.Annotations[naming.AnnotationMadeOf] == "" ||
		s.DB.Status.Restore != nil && s.DB.Status.Restore.CompletedAt != nil {
		return nil
	}
	name := claim.Annotations[naming.AnnotationMadeOf]
	backup, err := s.firstSnapshot(ctx)
	if err != nil || backup != nil && backup.Status.Snapshot != nil && backup.Status.Snapshot.Name == name {
		return err
	}
	return &world.Problem{Reason: v1.ReasonRestoreFailed,
		Message: fmt.Sprintf("PersistentVolumeClaim %s was made of VolumeSnapshot %s, "+
			"which is not that of spec.restoreFrom any more: delete the claim, or name the former DatabaseBackup again",
			claim.Name, name), Wait: world.WaitUser}
}

// usableSnapshot is the problem that a backup by a snapshot is not complete.
func usableSnapshot(backup *v1.DatabaseBackup) error {
	if meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete) &&
		backup.Status.Snapshot != nil && backup.Status.Archive != nil {
		return nil
	}
	return noSource("the DatabaseBackup %s is not complete", backup.Name)
}

// largeEnough is the problem that a claim asks for less than a snapshot needs.
func largeEnough(backup *v1.DatabaseBackup, claim *corev1.PersistentVolumeClaim) error {
	need, err := resource.ParseQuantity(backup.Status.Snapshot.Size)
	if err != nil {
		return nil //nolint:nilerr // the driver does not say how large it is, and finds out
	}
	if have := claim.Spec.Resources.Requests[corev1.ResourceStorage]; have.Cmp(need) < 0 {
		return &world.Problem{Reason: v1.ReasonInvalidSpec,
			Message: fmt.Sprintf("spec.storage.size is %s, and the snapshot of the "+
				"DatabaseBackup %s needs a volume of %s", have.String(), backup.Name, need.String()),
			Wait: world.WaitUser}
	}
	return nil
}

// snapshotSource is a backup by the snapshot of a volume, for a restore whose volume was made of it.
func snapshotSource(backup *v1.DatabaseBackup) (desired.Source, error) {
	if err := usableSnapshot(backup); err != nil {
		return desired.Source{}, err
	}
	source := desired.Source{
		Archive: *backup.Status.Archive.DeepCopy(), Backup: backup.Status.Snapshot.ID,
		Major:    desired.MajorOf(backup.Status.ServerVersion),
		Snapshot: volumes.Snapshot(backup), VolumeSnapshot: backup.Status.Snapshot.Name,
	}
	if source.Archive.Claim == "" {
		source.Archive.Claim = naming.Archive(backup.Spec.SampleDB)
	}
	return source, nil
}

// madeOfSource is the problem that the volume of a restore was not made of the snapshot that it is to begin with. What
// is on such a volume is somebody's, and is left alone.
func (s *restoreTopic) madeOfSource(x desired.Restore, source desired.Source) error {
	if source.Snapshot == nil {
		return nil
	}
	claim := s.Seen.Claims[x.Ordinal]
	switch {
	case claim == nil:
		return &world.Problem{Reason: v1.ReasonRestoring, Message: "waits for its volume", Wait: waitRestore}
	case volumes.IsMadeOf(claim, source.VolumeSnapshot):
		return nil
	}
	return &world.Problem{Reason: v1.ReasonRestoreFailed,
		Message: fmt.Sprintf("PersistentVolumeClaim %s was there before, and was not made "+
			"of VolumeSnapshot %s: delete it if nobody needs what is on it, or give the SampleDB another name",
			claim.Name, source.VolumeSnapshot), Wait: world.WaitUser}
}

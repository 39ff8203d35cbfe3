package volumes

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// VolumeSnapshotKind is the kind of snapshots of volumes, which a cluster need not have. Its types are not imported:
// of their fields we write two, and read five.
var VolumeSnapshotKind = schema.GroupVersionKind{
	Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot",
}

// VolumeSnapshot asks for a snapshot of the volume of an instance, for the session of an id. It goes with its
// DatabaseBackup.
func VolumeSnapshot(db *v1.SampleDB, backup *v1.DatabaseBackup, instance, session string) *unstructured.Unstructured {
	spec := map[string]any{"source": map[string]any{"persistentVolumeClaimName": naming.ClaimOf(instance)}}
	if class := backup.Spec.VolumeSnapshotClassName; class != "" {
		spec["volumeSnapshotClassName"] = class
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(VolumeSnapshotKind)
	out.SetName(naming.VolumeSnapshot(backup.Name, session))
	out.SetNamespace(backup.Namespace)
	out.SetLabels(naming.Common(db.Name))
	out.SetOwnerReferences([]metav1.OwnerReference{
		*metav1.NewControllerRef(backup, v1.GroupVersion.WithKind("DatabaseBackup")),
	})
	return out
}

// Snapshot is what a restore has to know of a backup by a snapshot of a volume, nil where it is none, or not complete.
func Snapshot(backup *v1.DatabaseBackup) *protocol.Snapshot {
	s := backup.Status.Snapshot
	if s == nil {
		return nil
	}
	return &protocol.Snapshot{
		ID: s.ID, Label: s.BackupLabel, Term: uint64(max(s.Term, 0)),
		Timeline: uint32(s.Timeline), //nolint:gosec // it comes from one
		StartLSN: backup.Status.StartLSN, StopLSN: backup.Status.StopLSN, Stopped: s.StoppedAt.Time.UTC(),
		ServerVersion: backup.Status.ServerVersion, SystemIdentifier: backup.Status.SystemIdentifier,
	}
}

// MadeOf has a claim be made of a VolumeSnapshot.
func MadeOf(claim *corev1.PersistentVolumeClaim, snapshot string) {
	group := VolumeSnapshotKind.Group
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{
		APIGroup: &group, Kind: VolumeSnapshotKind.Kind, Name: snapshot,
	}
	NoteMadeOf(claim, snapshot)
}

// NoteMadeOf notes on a claim what it was made of.
func NoteMadeOf(claim *corev1.PersistentVolumeClaim, snapshot string) {
	claim.Annotations[naming.AnnotationMadeOf] = snapshot
	claim.Annotations[naming.AnnotationApplied] = desired.Hash([]any{claim.OwnerReferences, snapshot})
}

// IsMadeOf says that a claim was made of a VolumeSnapshot.
func IsMadeOf(claim *corev1.PersistentVolumeClaim, snapshot string) bool {
	s := claim.Spec.DataSource
	return s != nil && s.Kind == VolumeSnapshotKind.Kind && s.Name == snapshot &&
		s.APIGroup != nil && *s.APIGroup == VolumeSnapshotKind.Group
}

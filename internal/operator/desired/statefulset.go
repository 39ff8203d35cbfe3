package desired

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// StatefulSet runs the instances. Pods start in parallel, and the operator alone
// decides when one is replaced (OnDelete). The claims' template can't be changed once it is
// there, so the one of current (nil before the first time) is kept; the claims themselves are made
// and grown by Claim. The config is only looked at for which restore in place the instances are to have taken over.
func StatefulSet(
	db *v1.SampleDB, settings Settings, config protocol.Config, replicas int, current *appsv1.StatefulSet,
) (*appsv1.StatefulSet, error) {
	templates, err := claimTemplates(db, current)
	if err != nil {
		return nil, err
	}
	count, revisions := int32(min(max(replicas, 0), 99)), int32(2)
	return &appsv1.StatefulSet{
		ObjectMeta: meta(db, naming.StatefulSet(db.Name)),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             &count,
			ServiceName:          naming.HeadlessService(db.Name),
			Selector:             &metav1.LabelSelector{MatchLabels: naming.InstanceSelector(db.Name)},
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			RevisionHistoryLimit: &revisions,
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
				WhenScaled:  appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			},
			Template:             podTemplate(db, settings, config),
			VolumeClaimTemplates: templates,
		},
	}, nil
}

func claimTemplates(db *v1.SampleDB, current *appsv1.StatefulSet) ([]corev1.PersistentVolumeClaim, error) {
	var out []corev1.PersistentVolumeClaim
	if current != nil && len(current.Spec.VolumeClaimTemplates) > 0 {
		for _, template := range current.Spec.VolumeClaimTemplates {
			kept := template.DeepCopy()
			kept.Status = corev1.PersistentVolumeClaimStatus{}
			out = append(out, *kept)
		}
		return out, nil
	}
	for _, of := range VolumesOf(db) {
		spec, err := of.spec(db)
		if err != nil {
			return nil, err
		}
		// Without a kind, as the cache has it too: else the next look would find another template, and write it again.
		out = append(out, corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: string(of), Labels: naming.Lasting(db.Name)}, Spec: spec,
		})
	}
	return out, nil
}

// MadeWithWAL says that the claims which a StatefulSet makes have volumes for the WAL, or not, as the SampleDB wants.
func MadeWithWAL(db *v1.SampleDB, set *appsv1.StatefulSet) bool {
	return len(set.Spec.VolumeClaimTemplates) == len(VolumesOf(db))
}

// Claim is the claim of an instance's data volume.
func Claim(db *v1.SampleDB, ordinal int, current *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return DataVolume.Claim(db, ordinal, current)
}

// Volume is one of those that an instance has.
type Volume string

// The volumes of an instance.
const (
	DataVolume Volume = naming.VolumeData
	WALVolume  Volume = naming.VolumeWAL
)

// VolumesOf are those that each instance of a SampleDB has.
func VolumesOf(db *v1.SampleDB) []Volume {
	if db.Spec.Storage.WAL == nil {
		return []Volume{DataVolume}
	}
	return []Volume{DataVolume, WALVolume}
}

// ClaimName is the name of its claim.
func (v Volume) ClaimName(db string, ordinal int) string {
	if v == WALVolume {
		return naming.WALClaim(db, ordinal)
	}
	return naming.Claim(db, ordinal)
}

// Size is its size in force.
func (v Volume) Size(db *v1.SampleDB) (resource.Quantity, error) {
	if v != WALVolume || db.Spec.Storage.WAL == nil {
		return Size(db)
	}
	size, err := resource.ParseQuantity(db.Spec.Storage.WAL.Size)
	if err != nil {
		return size, fmt.Errorf("storage.wal.size %q must be a quantity such as 10Gi: %w",
			db.Spec.Storage.WAL.Size, err)
	}
	return size, nil
}

// Class is the StorageClass that is asked for, nil for the cluster's default. That of the WAL is the one of the data
// where it does not say.
func (v Volume) Class(db *v1.SampleDB) *string {
	if wal := db.Spec.Storage.WAL; v == WALVolume && wal != nil && wal.StorageClassName != nil {
		return wal.StorageClassName
	}
	return db.Spec.Storage.StorageClassName
}

// Claim is the claim of an instance's volume. It never asks for less than current (nil before the first time)
// does. With deletionPolicy Delete it goes with the SampleDB, whoever deletes what belongs to that; else the
// operator alone removes it.
func (v Volume) Claim(
	db *v1.SampleDB, ordinal int, current *corev1.PersistentVolumeClaim,
) (*corev1.PersistentVolumeClaim, error) {
	spec, err := v.spec(db)
	if err != nil {
		return nil, err
	}
	if current != nil {
		spec.StorageClassName = current.Spec.StorageClassName
		spec.AccessModes = current.Spec.AccessModes
		spec.DataSource, spec.DataSourceRef = current.Spec.DataSource, current.Spec.DataSourceRef
		have := current.Spec.Resources.Requests[corev1.ResourceStorage]
		if want := spec.Resources.Requests[corev1.ResourceStorage]; want.Cmp(have) < 0 {
			spec.Resources.Requests[corev1.ResourceStorage] = have
		}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(db, v.ClaimName(db.Name, ordinal)), Spec: spec}
	stamp := Hash(claim.OwnerReferences)
	if DeletionPolicy(db) != v1.DeletionDelete {
		claim.OwnerReferences, claim.Labels = nil, naming.Lasting(db.Name)
		stamp = Hash(claim.Labels) // that of an earlier release had a label more
	}
	// What is taken from current must not make the claim look changed.
	claim.Annotations = map[string]string{naming.AnnotationApplied: stamp}
	return claim, nil
}

func claimSpec(db *v1.SampleDB) (corev1.PersistentVolumeClaimSpec, error) { return DataVolume.spec(db) }

func (v Volume) spec(db *v1.SampleDB) (corev1.PersistentVolumeClaimSpec, error) {
	size, err := v.Size(db)
	if err != nil {
		return corev1.PersistentVolumeClaimSpec{}, err
	}
	filesystem := corev1.PersistentVolumeFilesystem
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: v.Class(db),
		VolumeMode:       &filesystem,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: size},
		},
	}, nil
}

// RestartOrder compares two instances by when their servers restart: the primary comes last, since it hands over, and
// of the others the one with the last name first.
func RestartOrder(a, b, primary string) int {
	switch {
	case a == b:
		return 0
	case a == primary:
		return 1
	case b == primary:
		return -1
	}
	return strings.Compare(b, a)
}

package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
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
	if current != nil && len(current.Spec.VolumeClaimTemplates) > 0 {
		kept := current.Spec.VolumeClaimTemplates[0].DeepCopy()
		kept.Status = corev1.PersistentVolumeClaimStatus{}
		return []corev1.PersistentVolumeClaim{*kept}, nil
	}
	spec, err := claimSpec(db)
	if err != nil {
		return nil, err
	}
	// Without a kind, as the cache has it too: else the next look would find another template, and write it again.
	return []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: naming.VolumeData, Labels: naming.Common(db.Name)},
		Spec:       spec,
	}}, nil
}

// Claim is the volume claim of an instance. It never asks for less than current (nil before the first time)
// does. With deletionPolicy Delete it goes with the SampleDB, whoever deletes what belongs to that; else the
// operator alone removes it.
func Claim(db *v1.SampleDB, ordinal int, current *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	spec, err := claimSpec(db)
	if err != nil {
		return nil, err
	}
	if current != nil {
		spec.StorageClassName = current.Spec.StorageClassName
		spec.AccessModes = current.Spec.AccessModes
		have := current.Spec.Resources.Requests[corev1.ResourceStorage]
		if want := spec.Resources.Requests[corev1.ResourceStorage]; want.Cmp(have) < 0 {
			spec.Resources.Requests[corev1.ResourceStorage] = have
		}
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(db, naming.Claim(db.Name, ordinal)), Spec: spec}
	if DeletionPolicy(db) != v1.DeletionDelete {
		claim.OwnerReferences = nil
	}
	// What is taken from current must not make the claim look changed.
	claim.Annotations = map[string]string{naming.AnnotationApplied: Hash(claim.OwnerReferences)}
	return claim, nil
}

func claimSpec(db *v1.SampleDB) (corev1.PersistentVolumeClaimSpec, error) {
	size, err := Size(db)
	if err != nil {
		return corev1.PersistentVolumeClaimSpec{}, err
	}
	filesystem := corev1.PersistentVolumeFilesystem
	return corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: db.Spec.Storage.StorageClassName,
		VolumeMode:       &filesystem,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: size},
		},
	}, nil
}

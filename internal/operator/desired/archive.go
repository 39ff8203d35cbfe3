package desired

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// ArchiveClaim is the volume of an archive that lies on one. It never asks for less than current (nil
// before the first time) does. It has no owner: backups outlive what they are of, and who wants the
// room back deletes the claim.
func ArchiveClaim(db *v1.SampleDB, current *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	size, err := archiveSize(db)
	if err != nil {
		return nil, err
	}
	if v := Backup(db).Store.Volume; current == nil && (v == nil || v.Size == "") && size.Cmp(leastArchive) < 0 {
		size = leastArchive
	}
	filesystem := corev1.PersistentVolumeFilesystem
	spec := corev1.PersistentVolumeClaimSpec{
		AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		StorageClassName: archiveClass(db),
		VolumeMode:       &filesystem,
	}
	if current != nil {
		spec.StorageClassName, spec.AccessModes = current.Spec.StorageClassName, current.Spec.AccessModes
		if have := current.Spec.Resources.Requests[corev1.ResourceStorage]; size.Cmp(have) < 0 {
			size = have
		}
	}
	spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(db, naming.Archive(db.Name)), Spec: spec}
	claim.OwnerReferences = nil
	claim.Labels = merged(naming.Lasting(db.Name), archiveSelector(db))
	// What is taken from current must not make the claim look changed.
	claim.Annotations = map[string]string{naming.AnnotationApplied: Hash(claim.Labels)}
	return claim, nil
}

// leastArchive is the size of a new archive's volume at least, where the spec says nothing. The WAL of a week is the
// greater part of an archive of a small database, and has little to do with its size.
var leastArchive = resource.MustParse("10Gi")

// archiveSize is what the spec asks for, or twice the size of an instance's volume.
func archiveSize(db *v1.SampleDB) (resource.Quantity, error) {
	if v := Backup(db).Store.Volume; v != nil && v.Size != "" {
		size, err := resource.ParseQuantity(v.Size)
		if err != nil {
			return size, fmt.Errorf("backup.store.volume.size %q must be a quantity such as 20Gi: %w", v.Size, err)
		}
		return size, nil
	}
	size, err := Size(db)
	if err != nil {
		return size, err
	}
	return *resource.NewQuantity(2*size.Value(), resource.BinarySI), nil
}

// archiveClass is what the spec asks for, or where it says nothing of the volume, the class of the instances' volumes:
// the cluster may have no default one.
func archiveClass(db *v1.SampleDB) *string {
	if v := Backup(db).Store.Volume; v != nil {
		return v.StorageClassName
	}
	return db.Spec.Storage.StorageClassName
}

func archiveLabels(db *v1.SampleDB) map[string]string {
	return merged(naming.Common(db.Name), archiveSelector(db))
}

func archiveSelector(db *v1.SampleDB) map[string]string {
	return map[string]string{naming.LabelSampleDB: db.Name, naming.LabelComponent: naming.ComponentArchive}
}

// ArchiveDeployment runs the server of the volume. Only one may have the volume at a time, so the old
// Pod goes before the new one comes; meanwhile WAL waits in the instances.
func ArchiveDeployment(db *v1.SampleDB, settings Settings) *appsv1.Deployment {
	one, revisions := int32(1), int32(2)
	object := meta(db, naming.Archive(db.Name))
	object.Labels = archiveLabels(db)
	return &appsv1.Deployment{
		ObjectMeta: object,
		Spec: appsv1.DeploymentSpec{
			Replicas:             &one,
			RevisionHistoryLimit: &revisions,
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector:             &metav1.LabelSelector{MatchLabels: archiveSelector(db)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: archiveLabels(db)},
				Spec:       archivePod(db, settings),
			},
		},
	}
}

func archivePod(db *v1.SampleDB, settings Settings) corev1.PodSpec {
	grace := int64(30)
	pod := auxiliaryPod(db, initUser)
	pod.TerminationGracePeriodSeconds = &grace
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerArchive,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			naming.PathImageBinary, "archive", "serve",
			"--folder", naming.PathArchive,
			"--authority", naming.PathAuthority,
			"--path", naming.ArchivePath(db.Namespace, db.Name, string(db.UID)),
		},
		Ports: []corev1.ContainerPort{
			{Name: "archive", ContainerPort: naming.PortAgent, Protocol: corev1.ProtocolTCP},
			{Name: "probe", ContainerPort: naming.PortProbe, Protocol: corev1.ProtocolTCP},
		},
		LivenessProbe:   probe("/livez", 10, 5, 6),
		ReadinessProbe:  probe("/readyz", 2, 3, 2),
		Resources:       requests("10m", "64Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeArchive, MountPath: naming.PathArchive},
			{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
		},
	}}
	pod.Volumes = []corev1.Volume{
		claimVolume(volumeArchive, naming.Archive(db.Name)),
		authorityVolume(volumeAuthority, db.Name),
	}
	return pod
}

// ArchiveService is where the instances find the server of the volume.
func ArchiveService(db *v1.SampleDB) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(db, naming.Archive(db.Name)),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: archiveSelector(db),
			Ports: []corev1.ServicePort{{
				Name: "archive", Protocol: corev1.ProtocolTCP, Port: naming.PortAgent,
				TargetPort: intstr.FromString("archive"),
			}},
		},
	}
}

// ArchivePolicy lets the instances, the backups and restores reach the volume's server, and nobody else.
func ArchivePolicy(db *v1.SampleDB) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(db, naming.Archive(db.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: archiveSelector(db)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				{Ports: []networkingv1.NetworkPolicyPort{port(naming.PortProbe)}},
				{
					Ports: []networkingv1.NetworkPolicyPort{port(naming.PortAgent)},
					From: []networkingv1.NetworkPolicyPeer{
						{PodSelector: &metav1.LabelSelector{MatchLabels: naming.InstanceSelector(db.Name)}},
						{PodSelector: &metav1.LabelSelector{MatchLabels: backupSelector(db.Name)}},
						{PodSelector: &metav1.LabelSelector{MatchLabels: verifySelector(db.Name)}},
						{PodSelector: &metav1.LabelSelector{MatchLabels: rehearsalSelector(db.Name)}},
						{PodSelector: &metav1.LabelSelector{MatchLabels: secondSelector(db.Name)}},
						{PodSelector: &metav1.LabelSelector{MatchLabels: BringSelector(db.Name)}},
						// A restore is of another SampleDB. It shows a certificate of this one's authority.
						{PodSelector: &metav1.LabelSelector{MatchLabels: restoreSelector("")}},
					},
				},
			},
		},
	}
}

// rehearsalSelector selects the Pods of a SampleDB's rehearsals. They are none of those that may reach a server.
func rehearsalSelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentRehearse}
}

package desired

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Volumes of our Pods besides naming.VolumeData.
const (
	volumeProgram   = "program"
	volumeConfig    = "config"
	volumeAuthority = "authority"
	volumeApp       = "app"
	volumeRun       = "run"
	volumeSocket    = "socket"
	volumeTmp       = "tmp"
	volumeMemory    = "shm"
	volumeStore     = "store"
	volumeStoreCA   = "store-ca"
	volumeSecond    = "second"
	volumeSecondCA  = "second-ca"
	volumeArchive   = "archive"
	volumeSource    = "source"
	volumeKey       = "key"
	volumePlan      = "plan"

	pathTmp    = "/tmp"
	pathMemory = "/dev/shm"
)

// secretMode lets the Pod's group read a mounted Secret, and nobody else.
const secretMode int32 = 0o440

// configMode lets everyone in the container read.
const configMode int32 = 0o444

func instanceVolumes(db *v1.SampleDB) []corev1.Volume {
	store, _ := storeVolumes(storeOf(db))
	given, _ := certificateVolumes(db)
	return slices.Concat([]corev1.Volume{
		configVolume(db),
		secretVolume(volumeAuthority, naming.AuthoritySecret(db.Name)),
		emptyVolume(volumeProgram, corev1.StorageMediumDefault),
		emptyVolume(volumeRun, corev1.StorageMediumMemory), // it has the server's key
		emptyVolume(volumeTmp, corev1.StorageMediumDefault),
		// Parallel queries share memory here; a container's own has 64 MB.
		emptyVolume(volumeMemory, corev1.StorageMediumMemory),
	}, store, given)
}

func instanceMounts(db *v1.SampleDB) []corev1.VolumeMount {
	_, store := storeVolumes(storeOf(db))
	_, given := certificateVolumes(db)
	return slices.Concat(walMount(db), []corev1.VolumeMount{
		{Name: naming.VolumeData, MountPath: naming.PathVolume},
		{Name: volumeConfig, MountPath: naming.PathConfig, ReadOnly: true},
		{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
		{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true},
		{Name: volumeRun, MountPath: naming.PathRun},
		{Name: volumeTmp, MountPath: pathTmp},
		{Name: volumeMemory, MountPath: pathMemory},
	}, store, given)
}

// walMount mounts the WAL volume, where there is one.
func walMount(db *v1.SampleDB) []corev1.VolumeMount {
	if db.Spec.Storage.WAL == nil {
		return nil
	}
	return []corev1.VolumeMount{{Name: naming.VolumeWAL, MountPath: naming.PathWAL}}
}

// walOptions tell a process where the WAL volume is mounted, where there is one.
func walOptions(db *v1.SampleDB) []string {
	if db.Spec.Storage.WAL == nil {
		return nil
	}
	return []string{"--" + naming.FlagWALVolume, naming.PathWAL}
}

// withWAL gives the first container of a Job's Pod the WAL volume of an instance, where there is one.
func withWAL(db *v1.SampleDB, pod *corev1.PodSpec, ordinal int) {
	if db.Spec.Storage.WAL == nil {
		return
	}
	pod.Volumes = append(slices.Clone(pod.Volumes), claimVolume(naming.VolumeWAL, naming.WALClaim(db.Name, ordinal)))
	work := &pod.Containers[0]
	work.VolumeMounts = append(slices.Clone(work.VolumeMounts), walMount(db)...)
	work.Command = append(slices.Clone(work.Command), walOptions(db)...)
}

func emptyVolume(name string, medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium},
	}}
}

func secretVolume(name, secret string) corev1.Volume {
	mode := secretMode
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: &mode},
	}}
}

// authorityVolume has NAME-ca of a SampleDB, to issue certificates with, and of its NAME-config which authorities are
// trusted. Both may change while the Pod runs.
func authorityVolume(name, db string) corev1.Volume {
	mode, optional := secretMode, true // a ConfigMap of an earlier release has no such key
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: naming.AuthoritySecret(db)},
			}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: naming.ConfigMap(db)},
				Items:                []corev1.KeyToPath{{Key: naming.KeyTrusted, Path: naming.KeyTrusted}},
				Optional:             &optional,
			}},
		}},
	}}
}

func configVolume(db *v1.SampleDB) corev1.Volume { return settingsVolume(naming.ConfigMap(db.Name)) }

// settingsVolume mounts a ConfigMap with settings.
func settingsVolume(settings string) corev1.Volume {
	mode := configMode
	return corev1.Volume{Name: volumeConfig, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: settings},
			DefaultMode:          &mode,
		},
	}}
}

// requests are the resources of a small helper container.
func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory),
		},
	}
}

package desired

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
)

// secondBucket is the second store as the Pods of its Job open it, nil where there is none.
func secondBucket(backup *v1.BackupSpec) *bucket.Config {
	if backup.SecondStore == nil {
		return nil
	}
	out := bucketConfig(backup.SecondStore.Store())
	out.Credentials, out.KeepAll = naming.PathSecond, false
	return &out
}

// CopyPlace names where the copy of a SampleDB's archive is, "" where there is none.
func CopyPlace(db *v1.SampleDB, path string) string {
	backup := Backup(db)
	if backup == nil || backup.SecondStore == nil {
		return ""
	}
	second := bucketConfig(backup.SecondStore.Store())
	return second.Place() + "/" + path
}

// secondSelector selects the Pods that copy a SampleDB's archive into the second store.
func secondSelector(db string) map[string]string {
	return map[string]string{naming.LabelSampleDB: db, naming.LabelComponent: naming.ComponentSecond}
}

// CopyJobName is the name of the Job that copies from the one to the other store of the spec, which must have both.
func CopyJobName(db *v1.SampleDB) string {
	backup := Backup(db)
	return naming.CopyJob(db.Name, Hash([]any{backup.Store, backup.SecondStore}))
}

// CopyJob copies the archive into the second store, once. Its Pod alone has the credentials of that. It runs our
// program in our own image, and reads the first store as a restore does.
func CopyJob(db *v1.SampleDB, settings Settings) *batchv1.Job {
	object := meta(db, CopyJobName(db))
	object.Labels = merged(object.Labels, secondSelector(db.Name))
	return workSecond.Job(object, copyPod(db, settings))
}

func copyPod(db *v1.SampleDB, settings Settings) corev1.PodSpec {
	grace := int64(30)
	volumes, mounts := copyVolumes(db)
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.ServiceAccountName = naming.ServiceAccount(db.Name) // whose identity the cloud of the first store may know
	pod.TerminationGracePeriodSeconds = &grace
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerSecond,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{naming.PathImageBinary, naming.VerbWork, "second"},
		Env:             copyEnv(db),
		Resources:       requests("50m", "128Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    mounts,
	}}
	pod.Volumes = volumes
	return pod
}

// copyVolumes mount the settings, the credentials of both stores, and where the first one is a volume, the authority
// for a certificate that it knows.
func copyVolumes(db *v1.SampleDB) ([]corev1.Volume, []corev1.VolumeMount) {
	mode := configMode
	volumes, mounts := storeVolumes(storeOf(db))
	volumes = append(volumes,
		corev1.Volume{Name: volumeConfig, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: naming.BackupConfigMap(db.Name)},
			DefaultMode:          &mode,
		}}},
		emptyVolume(volumeRun, corev1.StorageMediumMemory), // it has the Pod's key
	)
	mounts = append(mounts,
		corev1.VolumeMount{Name: volumeConfig, MountPath: naming.PathBackup, ReadOnly: true},
		corev1.VolumeMount{Name: volumeRun, MountPath: naming.PathRun},
	)
	if OnVolume(db) {
		volumes = append(volumes, authorityVolume(volumeAuthority, db.Name))
		mounts = append(mounts, corev1.VolumeMount{
			Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true})
	}
	credentials, authority := storeSecrets(Backup(db).SecondStore.Store())
	ofSecond, at := mountSecrets(
		userSecret{volumeSecond, credentials, naming.PathSecond},
		userSecret{volumeSecondCA, authority, naming.PathSecondCA},
	)
	return append(volumes, ofSecond...), append(mounts, at...)
}

// copyEnv trusts the authorities of both stores.
func copyEnv(db *v1.SampleDB) []corev1.EnvVar {
	var folders []string
	if _, authority := storeSecrets(storeOf(db)); authority != "" {
		folders = append(folders, naming.PathStoreCA)
	}
	if _, authority := storeSecrets(Backup(db).SecondStore.Store()); authority != "" {
		folders = append(folders, naming.PathSecondCA)
	}
	return trustFolders(folders...)
}

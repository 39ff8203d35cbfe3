package desired

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// initUser is an id without a name, as usual in images without a user database.
const initUser = 65532

// InitJob does the first work in a new SampleDB. It waits for the primary by
// itself, so that its own start overlaps with that of the instances.
// The sources hash is that of the SQL it was made for; it is kept in an
// annotation, so that a failed Job is tried again when the SQL has changed.
func InitJob(db *v1.SampleDB, settings Settings, sourcesHash string) *batchv1.Job {
	object := meta(db, naming.InitJob(db.Name, Plan(db).Hash))
	object.Labels[naming.LabelComponent] = naming.ComponentInit
	object.Annotations = map[string]string{naming.AnnotationSources: sourcesHash}
	return workInit.Job(object, initPod(db, settings))
}

func initPod(db *v1.SampleDB, settings Settings) corev1.PodSpec {
	volumes, mounts := initVolumes(db)
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerInit,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{
			naming.PathImageBinary, naming.VerbWork, "init",
			"--plan", naming.PathConfig + "/" + naming.KeyInit,
			"--authority", naming.PathAuthority,
			"--app", naming.PathApp,
		},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    mounts,
	}}
	pod.Volumes = volumes
	return pod
}

// initVolumes mounts the plan, the Secrets it logs in and makes the role with,
// and each source of SQL in a folder of its own.
func initVolumes(db *v1.SampleDB) ([]corev1.Volume, []corev1.VolumeMount) {
	volumes := []corev1.Volume{
		configVolume(db),
		authorityVolume(volumeAuthority, db.Name),
		secretVolume(volumeApp, naming.AppSecret(db.Name)),
		emptyVolume(volumeTmp, corev1.StorageMediumDefault),
	}
	mounts := []corev1.VolumeMount{
		{Name: volumeConfig, MountPath: naming.PathConfig, ReadOnly: true},
		{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
		{Name: volumeApp, MountPath: naming.PathApp, ReadOnly: true},
		{Name: volumeTmp, MountPath: pathTmp},
	}
	for i, source := range initSpec(db).SQL {
		name := fmt.Sprintf("sql-%02d", i)
		volumes = append(volumes, sqlVolume(name, source))
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: sqlPath(i), ReadOnly: true})
	}
	return volumes, mounts
}

// sqlVolume has the one key that the source names. A missing Secret does not keep
// the Pod from starting: nobody but the init Job could say that it is missing.
func sqlVolume(name string, source v1.SQLSource) corev1.Volume {
	_, selector := sourceKey(source)
	items := []corev1.KeyToPath{{Key: selector.Key, Path: selector.Key}}
	if source.Secret != nil {
		volume := optionalSecret(name, selector.Name)
		volume.Secret.Items = items
		return volume
	}
	mode := configMode
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: selector.Name},
			Items:                items,
			DefaultMode:          &mode,
		},
	}}
}

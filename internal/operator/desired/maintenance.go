package desired

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// FinishJob does what is left to do in the databases after a change of the image: the parts that are wanted. Its Pod
// connects to the primary as the init Job's does, and has no volume of the database.
func FinishJob(db *v1.SampleDB, settings Settings, parts []v1.FinishPart) *batchv1.Job {
	object := meta(db, naming.FinishJob(db.Name))
	object.Labels[naming.LabelComponent] = naming.ComponentFinish
	var names []string
	for _, part := range parts {
		names = append(names, string(part))
	}
	wanted := strings.Join(names, ",")
	object.Annotations = map[string]string{naming.AnnotationFinish: wanted}
	return workFinish.Job(object, finishPod(db, settings, wanted))
}

func finishPod(db *v1.SampleDB, settings Settings, parts string) corev1.PodSpec {
	pod := auxiliaryPod(db, initUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	command := []string{
		naming.PathImageBinary, naming.VerbWork, "finish",
		"--plan", naming.PathConfig + "/" + naming.KeyInit,
		"--authority", naming.PathAuthority,
		"--parts", parts,
	}
	if UpdatesExtensions(db) {
		command = append(command, "--update-extensions")
	}
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerFinish,
		Image:           settings.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         command,
		Resources:       requests("10m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: volumeConfig, MountPath: naming.PathConfig, ReadOnly: true},
			{Name: volumeAuthority, MountPath: naming.PathAuthority, ReadOnly: true},
		},
	}}
	pod.Volumes = []corev1.Volume{configVolume(db), authorityVolume(volumeAuthority, db.Name)}
	return pod
}

// UpdatesExtensions says that the spec wants extensions to be updated after a change of the image.
func UpdatesExtensions(db *v1.SampleDB) bool {
	return db.Spec.Update != nil && db.Spec.Update.Extensions == v1.ExtensionsUpdate
}

// FinishOnRequest says that what a change of the image leaves in the databases waits until somebody asks for it.
func FinishOnRequest(db *v1.SampleDB) bool {
	return db.Spec.Update != nil && db.Spec.Update.Mode == v1.UpdateOnRequest
}

package desired

import (
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// imageDeadline is how long a look into an image may take, the pull included (seconds).
const imageDeadline = 600

// FixedImage says that an image is named by its digest, so that it never changes.
func FixedImage(image string) bool { return strings.Contains(image, "@") }

// ImageJob looks what is in the image of the instances: as its registry has it now, or with fromNode as some node has
// it already. Its Pod has no Secret, no token and no volume of the database.
func ImageJob(db *v1.SampleDB, settings Settings, fromNode bool) *batchv1.Job {
	name, pull := naming.ImageJob(db.Name), corev1.PullAlways
	switch {
	case fromNode:
		name, pull = naming.NodeImageJob(db.Name), corev1.PullIfNotPresent
	case FixedImage(Image(db, settings)):
		pull = corev1.PullIfNotPresent
	}
	backoff, deadline := int32(0), int64(imageDeadline)
	labels := merged(naming.Common(db.Name), map[string]string{naming.LabelComponent: naming.ComponentImage})
	object := meta(db, name)
	object.Labels = labels
	return &batchv1.Job{
		ObjectMeta: object,
		Spec: batchv1.JobSpec{
			BackoffLimit:          &backoff,
			ActiveDeadlineSeconds: &deadline,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       imagePod(db, settings, pull),
			},
		},
	}
}

func imagePod(db *v1.SampleDB, settings Settings, pull corev1.PullPolicy) corev1.PodSpec {
	pod := auxiliaryPod(db, instanceUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerImage,
		Image:           Image(db, settings),
		ImagePullPolicy: pull,
		Command:         []string{naming.PathBinary, "image", "--major", strconv.Itoa(int(db.Spec.Version))},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true}},
	}}
	pod.Volumes = []corev1.Volume{emptyVolume(volumeProgram, corev1.StorageMediumDefault)}
	return pod
}

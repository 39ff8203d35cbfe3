package desired

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// NamedImage is the PostgreSQL image of the data's major version as the spec names it, or named it before an upgrade.
func NamedImage(db *v1.SampleDB, settings Settings) string {
	if u := db.Status.Upgrade; u.HasSides() && Major(db) == int(u.To) && db.Spec.Version != u.To {
		return u.Image
	}
	if Upgrades(db) && db.Status.Upgrade != nil && db.Status.Upgrade.FormerImage != "" {
		return db.Status.Upgrade.FormerImage
	}
	return WantedImage(db, settings)
}

// WantedImage is the image as the spec names it, which is that of another major version while the data is not upgraded.
func WantedImage(db *v1.SampleDB, settings Settings) string {
	if db.Spec.Image != "" {
		return db.Spec.Image
	}
	return fmt.Sprintf("%s:%d", settings.PostgreSQL, db.Spec.Version)
}

// Major is the PostgreSQL major version of the data, which is the spec's but while the data is not upgraded yet.
func Major(db *v1.SampleDB) int {
	if db.Status.Major != 0 {
		return int(db.Status.Major)
	}
	return int(db.Spec.Version)
}

// Upgrades says that the spec wants a newer major version than the data has.
func Upgrades(db *v1.SampleDB) bool { return Major(db) < int(db.Spec.Version) }

// BlueGreen says that the SampleDB is to move on to another major version by a second side.
func BlueGreen(db *v1.SampleDB) bool {
	return db.Spec.Upgrade != nil && db.Spec.Upgrade.Strategy == v1.StrategyBlueGreen
}

// Image is the PostgreSQL image that instances are made from, and all else that needs its programs: the one by its
// digest that the status has on record for the named one, else the named one itself.
func Image(db *v1.SampleDB, settings Settings) string {
	named, known := NamedImage(db, settings), db.Status.Image
	if known == nil || known.Name != named || known.Runs == "" || FixedImage(named) {
		return named
	}
	return known.Runs
}

// recorded is the digest of Image where it is the one on record, else "".
func recorded(db *v1.SampleDB, settings Settings) string {
	if image := Image(db, settings); image != NamedImage(db, settings) {
		return Digest(image)
	}
	return ""
}

// Digest is the digest in a reference, "" where it has none.
func Digest(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// SameRepository says that two images are of one repository. The names that are short for ones of Docker's own
// registry mean those, as they do to the kubelet: postgres is docker.io/library/postgres.
func SameRepository(a, b string) bool { return repository(a) == repository(b) }

// InRepositoryOf is an image by its digest, by the name of the repository of another one.
func InRepositoryOf(other, image string) string { return repository(other) + "@" + Digest(image) }

func repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if slash := strings.LastIndexByte(name, '/'); strings.LastIndexByte(name, ':') > slash {
		name = name[:strings.LastIndexByte(name, ':')]
	}
	host, _, found := strings.Cut(name, "/")
	switch {
	case !found:
		return "docker.io/library/" + name
	case host == "localhost" || strings.ContainsAny(host, ".:"):
		return name
	}
	return "docker.io/" + name
}

// FixedImage says that an image is named by its digest, so that it never changes.
func FixedImage(image string) bool { return strings.Contains(image, "@") }

// ImageJob looks what is in the image of the instances: as its registry has it now, or with fromNode as some node has
// it already. Its Pod has no Secret, no token and no volume of the database.
func ImageJob(db *v1.SampleDB, settings Settings, fromNode bool) *batchv1.Job {
	name, pull := naming.ImageJob(db.Name), corev1.PullAlways
	switch {
	case fromNode:
		name, pull = naming.NodeImageJob(db.Name), corev1.PullIfNotPresent
	case FixedImage(NamedImage(db, settings)):
		pull = corev1.PullIfNotPresent
	}
	return imageJob(db, name, imagePod(db, settings, NamedImage(db, settings), Major(db), pull))
}

// Pull is an image of a major version that the node of an instance, by ordinal, is to have.
type Pull struct {
	Ordinal     int
	Node, Image string
	Major       int
}

// PullJob has the node of an instance pull an image that is named by its digest, and looks into it there. It goes past
// the scheduler, so that a cordoned node has it too: it is the node to which the instance comes back.
func PullJob(db *v1.SampleDB, settings Settings, p Pull) *batchv1.Job {
	pod := imagePod(db, settings, p.Image, p.Major, corev1.PullIfNotPresent)
	pod.NodeName, pod.NodeSelector = p.Node, nil
	job := imageJob(db, naming.PullJob(db.Name, p.Ordinal), pod)
	job.Annotations = map[string]string{naming.AnnotationPulls: p.Image}
	return job
}

func imageJob(db *v1.SampleDB, name string, pod corev1.PodSpec) *batchv1.Job {
	object := meta(db, name)
	object.Labels[naming.LabelComponent] = naming.ComponentImage
	return workImage.Job(object, pod)
}

func imagePod(
	db *v1.SampleDB, settings Settings, image string, major int, pull corev1.PullPolicy,
) corev1.PodSpec {
	pod := auxiliaryPod(db, instanceUser)
	pod.RestartPolicy = corev1.RestartPolicyNever
	pod.InitContainers = []corev1.Container{installContainer(settings)}
	pod.Containers = []corev1.Container{{
		Name:            naming.ContainerImage,
		Image:           image,
		ImagePullPolicy: pull,
		Command:         []string{naming.PathBinary, naming.VerbWork, "image", "--major", strconv.Itoa(major)},
		Resources:       requests("10m", "32Mi"),
		SecurityContext: containerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: volumeProgram, MountPath: naming.PathProgram, ReadOnly: true}},
	}}
	pod.Volumes = []corev1.Volume{emptyVolume(volumeProgram, corev1.StorageMediumDefault)}
	return pod
}

package desired

import (
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Work is a kind of work that is done in a Pod: how its Job is tried again, ended and kept.
type Work struct {
	// Retries is how often the Pod is made anew after it has failed.
	Retries int32
	// Deadline is after how long it is ended, 0 for never.
	Deadline time.Duration
	// Kept is for how long an ended Job stays, for its log: with its scratch volume, and while it is there no other one
	// of its name is made. 0 is until somebody removes it.
	Kept time.Duration
	// OneAfterAnother says that a Pod is made anew only when the one before has ended, which has the volume, or whose
	// leftovers it cleans up.
	OneAfterAnother bool
	// Refuses has the Job end at once where another try would fail in the same way; In is the container that says so,
	// "" for any.
	Refuses bool
	In      string
}

// The kinds of work. A Deadline that is not here is that of the object that asks for it.
var (
	workInit      = Work{Retries: 6}
	workFinish    = Work{Retries: 6} // one that is lost is made again, and goes on
	workPasswords = Work{Retries: math.MaxInt32}
	// workImage looks into an image or pulls it: the pull counts.
	workImage = Work{Deadline: 10 * time.Minute}

	workBackup = Work{Retries: 3, Kept: 24 * time.Hour, OneAfterAnother: true}
	// workRetention is ended where no node takes it, or where it hangs: the next one knows what time it is.
	workRetention = Work{Deadline: 24 * time.Hour, Kept: 10 * time.Minute}
	// workVerify finds what it finds, once.
	workVerify  = Work{Kept: 10 * time.Minute}
	workRestore = Work{Retries: 3, Kept: 24 * time.Hour, OneAfterAnother: true, Refuses: true,
		In: naming.ContainerRestore}
	workBring = Work{Retries: 3, OneAfterAnother: true, Refuses: true}
	// workSecond is ended when it hangs: the next one copies what is still missing.
	workSecond = Work{Deadline: 24 * time.Hour, Kept: 10 * time.Minute}
	// workDrill has one Pod: another one would have seen another outage.
	workDrill = Work{}
)

// Within is the work with a deadline, of a second at least.
func (w Work) Within(deadline time.Duration) Work {
	w.Deadline = max(deadline, time.Second)
	return w
}

// Job is one of the work. Its Pods have its labels.
func (w Work) Job(object metav1.ObjectMeta, pod corev1.PodSpec) *batchv1.Job {
	spec := batchv1.JobSpec{BackoffLimit: &w.Retries, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: object.Labels}, Spec: pod,
	}}
	if w.Deadline > 0 {
		seconds := int64(w.Deadline.Seconds())
		spec.ActiveDeadlineSeconds = &seconds
	}
	if w.Kept > 0 {
		seconds := int32(w.Kept.Seconds())
		spec.TTLSecondsAfterFinished = &seconds
	}
	if w.OneAfterAnother {
		ended := batchv1.Failed
		spec.PodReplacementPolicy = &ended
	}
	if w.Refuses {
		spec.PodFailurePolicy = failAtOnce(w.In)
	}
	return &batchv1.Job{ObjectMeta: object, Spec: spec}
}

// failAtOnce ends a Job where another try of a container, "" for any, would fail in the same way.
func failAtOnce(container string) *batchv1.PodFailurePolicy {
	var name *string
	if container != "" {
		name = &container
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
			ContainerName: name,
			Operator:      batchv1.PodFailurePolicyOnExitCodesOpIn,
			Values:        []int32{naming.ExitRefused, naming.ExitImageUnusable},
		},
	}}}
}

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

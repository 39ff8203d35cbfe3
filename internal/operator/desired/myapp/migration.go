package myapp

import (
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/myapp/v1"
	toban "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// startPatience is how much longer a migration's Job may take than its Pod: until a node has taken that.
const startPatience = time.Minute

// backupPatience is how long the backup before a migration may take.
const backupPatience = 24 * time.Hour

// Version identifies the code and the schema that a spec asks for: another one is an update, which
// its migration comes before.
func Version(spec v1.MyAppSpec) string {
	m := spec.Migration
	if m == nil {
		return desired.Hash([]any{spec.Image})
	}
	return desired.Hash([]any{spec.Image, m.Image, m.Command, m.Args, direct(spec.Database)})
}

// Update is a step from one version to the next.
type Update struct {
	// From is the image that runs, "" where none does.
	From string
	// Revision is that of what runs: going there and back and there again are three updates.
	Revision int64
}

// MigrationJob brings the schema to the version of the spec. It is run once: a Pod that fails is not made anew.
func MigrationJob(app *v1.MyApp, update Update) *batchv1.Job {
	pod := migrationPod(app, update)
	object := meta(app, naming.MigrationJob(app.Name, attempt(app, update)))
	object.Labels = pod.Labels
	object.Annotations = map[string]string{
		naming.AnnotationMigration: Version(app.Spec),
		naming.AnnotationRevision:  strconv.FormatInt(update.Revision, 10),
	}
	once := desired.Work{OneAfterAnother: true}.Within(app.Spec.Migration.Deadline.Duration + startPatience)
	job := once.Job(object, pod.Spec)
	job.Spec.Template = pod
	return job
}

// attempt is the hash of all that may make a migration succeed that has failed: another one is another try. It is not
// that of the Pod, which a new version of the operator may make otherwise.
func attempt(app *v1.MyApp, update Update) string {
	spec, m := app.Spec, *app.Spec.Migration
	m.Backup = false
	return desired.Hash([]any{
		app.UID, update, app.Annotations[naming.AnnotationRetry], app.Annotations[naming.AnnotationSecrets],
		spec.Image, m, direct(spec.Database), spec.Env, spec.Config, spec.Resources, spec.SecurityContext,
		spec.PodSecurityContext, spec.Pod,
	})
}

func migrationPod(app *v1.MyApp, update Update) corev1.PodTemplateSpec {
	spec, m := app.Spec, app.Spec.Migration
	spec.Database = direct(spec.Database)
	image := m.Image
	if image == "" {
		image = spec.Image
	}
	c := container(spec, naming.ContainerMigrate, image)
	c.Command, c.Args = m.Command, m.Args
	c.Env = append(c.Env,
		corev1.EnvVar{Name: naming.EnvImageFrom, Value: update.From},
		corev1.EnvVar{Name: naming.EnvImageTo, Value: spec.Image})
	pod := podSpec(spec, c)
	pod.RestartPolicy = corev1.RestartPolicyNever
	// The kubelet ends a Pod that takes too long and keeps what it wrote last; the Job's own deadline would delete it.
	deadline := int64(m.Deadline.Seconds())
	pod.ActiveDeadlineSeconds = &deadline
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels: desired.Merged(spec.Pod.Labels, naming.AppLabels(app.Name),
				map[string]string{naming.LabelComponent: naming.ComponentMigrate}),
		},
		Spec: pod,
	}
}

// MigrationBackup is the backup that is taken of a SampleDB before a Job. No owner reference ties it to the MyApp: it
// is worth most when that is gone. It is of the primary, and so has all that was committed before it ends.
func MigrationBackup(app *v1.MyApp, job *batchv1.Job, sampleDB string) *toban.DatabaseBackup {
	hash := job.Name[len(naming.MigrationJob(app.Name, "")):]
	return &toban.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{
			Name: naming.MigrationBackup(app.Name, hash), Namespace: app.Namespace,
			Labels: map[string]string{naming.LabelMyApp: app.Name, naming.LabelSampleDB: sampleDB},
		},
		Spec: toban.DatabaseBackupSpec{
			SampleDB: sampleDB, From: toban.BackupFromPrimary, Deadline: metav1.Duration{Duration: backupPatience},
		},
	}
}

package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// migrated is an application whose first migration has succeeded and whose Pods serve.
func (w *appWorld) migrated(backup bool, modify ...func(*appv1.MyApp)) *appv1.MyApp {
	w.Helper()
	w.postgres("shop")
	app := w.made(append([]func(*appv1.MyApp){withMigration(false)}, modify...)...)
	w.endMigration("")
	app = w.again(app)
	w.playDeployment(app)
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Migration.Backup = backup })
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	w.drainEvents()
	w.writes.take()
	return app
}

// variable is the value of a variable of a Job's container.
func variable(job *batchv1.Job, name string) string {
	for _, e := range job.Spec.Template.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return "none"
}

// removePods takes away what Kubernetes' garbage collector would, when a Job has gone.
func (w *appWorld) removePods() {
	w.Helper()
	for _, pod := range w.pods(map[string]string{naming.LabelComponent: naming.ComponentMigrate}) {
		w.must(w.api.Delete(w.Context(), &pod, client.GracePeriodSeconds(0)))
	}
}

func TestTheFirstMigrationComesBeforeTheFirstPods(t *testing.T) {
	w := newAppWorld(t)
	app := w.made(withMigration(false))
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonDatabaseNotFound)
	w.postgres("shop")
	w.setPostgres("shop", false)
	app = w.again(app)
	if message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse,
		appv1.ReasonDatabaseNotReady); !strings.Contains(message, "the test's words") {
		t.Errorf("it says %q", message)
	}
	if len(w.migrations()) > 0 {
		t.Error("it does not wait for the database")
	}
	w.setPostgres("shop", true)
	app = w.again(app)
	job := w.goes("", "nginx:1.25")
	spec := job.Spec
	if *spec.BackoffLimit != 0 || *spec.ActiveDeadlineSeconds != 660 ||
		*spec.Template.Spec.ActiveDeadlineSeconds != 600 ||
		spec.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the Job is %s", jsonOf(t, spec))
	}
	w.shows(app, `"phase":"Migrating"`)
	w.startMigration(job)
	app = w.again(app)
	w.ready(app, metav1.ConditionFalse, appv1.ReasonMigrating)
	w.rests(app)
	w.endMigration("")
	app = w.again(app)
	w.says(app, appv1.ConditionMigrated, metav1.ConditionTrue, appv1.ReasonMigrated)
	w.shows(app, `"image":"nginx:1.25"`, `"job":"`+job.Name+`"`, `"completedAt":`, `"startedAt":`)
	if w.runs(app) != "nginx:1.25" {
		t.Errorf("it runs %s", w.runs(app))
	}
	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	w.rests(app)
}

// A change of the image: a backup, the migration once, and only then the Pods.
func TestAnUpdateOfTheCodeWithItsSchema(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(true)
	first := w.migration().Name
	w.writes.take()
	app = w.change(app, image("nginx:1.26"))
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonBackingUp)
	w.tells("BackingUp")
	backups := w.backups()
	if len(backups) != 1 || backups[0].Spec.SampleDB != "shop" || backups[0].Spec.From != v1.BackupFromPrimary ||
		len(backups[0].OwnerReferences) > 0 {
		t.Fatalf("the backups are %s", jsonOf(t, backups))
	}
	app = w.again(app)
	if jobs := w.migrations(); len(jobs) > 0 || w.runs(app) != "nginx:1.25" {
		t.Fatalf("it does not wait for the backup: %s", jsonOf(t, jobs))
	}
	w.shows(app, `"backup":"`+backups[0].Name+`"`, `"image":"nginx:1.26"`)
	w.rests(app)

	w.endBackup(&backups[0], "")
	app = w.again(app)
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
	w.tells("Migrating")
	job := w.goes("nginx:1.25", "nginx:1.26")
	if job.Name == first || job.Spec.Template.Spec.Containers[0].Image != "nginx:1.26" {
		t.Errorf("the Job is %s", jsonOf(t, job))
	}
	w.removePods()
	w.startMigration(job)
	app = w.again(app)
	message := w.ready(app, metav1.ConditionFalse, appv1.ReasonMigrating)
	if !strings.Contains(message, job.Name) || !strings.Contains(message, "3 Pods of nginx:1.25 serve") ||
		w.runs(app) != "nginx:1.25" {
		t.Errorf("it says %q", message)
	}
	w.shows(app, `"phase":"Migrating"`)
	w.rests(app)

	w.endMigration("")
	app = w.again(app)
	if w.runs(app) != "nginx:1.26" {
		t.Errorf("it runs %s", w.runs(app))
	}
	w.shows(app, `"backup":"`+backups[0].Name+`"`, `"job":"`+job.Name+`"`, `"completedAt":`, `"revision":2`)
	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	if len(w.migrations()) != 1 || len(w.backups()) != 1 {
		t.Error("there is more than one migration or backup")
	}
	w.tells("Migrated", "Rolling", "Ready")
	w.restart()
	w.rests(app)
}

// A migration that fails leaves what ran as it was, says its last words, and is not tried again by itself.
func TestAFailedMigrationLeavesTheOldVersion(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(false)
	before := w.deployment(app)
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Image, app.Spec.Env = "nginx:1.26", []corev1.EnvVar{{Name: "NEW", Value: "1"}}
	})
	job := w.migration()
	w.endMigration("ERROR: relation guests does not exist")
	app = w.again(app)
	message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrationFailed)
	if !strings.Contains(message, "relation guests does not exist") || !strings.Contains(message, job.Name) {
		t.Errorf("it says %q", message)
	}
	w.ready(app, metav1.ConditionFalse, appv1.ReasonMigrationFailed)
	if app.Status.Phase != "Degraded" || app.Status.Image != "nginx:1.25" || app.Status.Migration.Message == "" ||
		app.Status.Migration.CompletedAt != nil {
		t.Errorf("it says %s", jsonOf(t, app.Status))
	}
	if was, is := jsonOf(t, before.Spec.Template), jsonOf(t, w.deployment(app).Spec.Template); was != is {
		t.Errorf("the Pods were\n%s\nand are\n%s", was, is)
	}
	if told := w.drainEvents(); strings.Count(told, "relation guests") != 1 {
		t.Errorf("it tells\n%s", told)
	}
	w.restart()
	w.rests(app)

	// Scaling goes on, and what somebody does to the Deployment is put back to the old version.
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Replicas = ptr.To[int32](5) })
	if d := w.deployment(app); *d.Spec.Replicas != 5 || w.runs(app) != "nginx:1.25" {
		t.Errorf("it runs %s with %d Pods", w.runs(app), *d.Spec.Replicas)
	}
	w.must(w.api.Delete(t.Context(), w.deployment(app)))
	app = w.again(app)
	if was, is := jsonOf(t, before.Spec.Template), jsonOf(t, w.deployment(app).Spec.Template); was != is {
		t.Errorf("the Pods were\n%s\nand are\n%s", was, is)
	}
	if len(w.migrations()) != 1 {
		t.Error("it is tried again by itself")
	}
}

// A failed update is tried again in each of the ways that the documentation names.
func TestAFailedMigrationCanBeTriedAgain(t *testing.T) {
	for name, again := range map[string]func(*appWorld, *appv1.MyApp){
		"by deleting the Job": func(w *appWorld, _ *appv1.MyApp) {
			w.must(w.api.Delete(w.Context(), w.migration(),
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
		},
		"by the annotation": func(w *appWorld, app *appv1.MyApp) {
			w.change(app, func(app *appv1.MyApp) { app.Annotations = map[string]string{naming.AnnotationRetry: "1"} })
		},
		"by mending the migration": func(w *appWorld, app *appv1.MyApp) {
			w.change(app, func(app *appv1.MyApp) { app.Spec.Migration.Args = []string{"--force"} })
		},
		"by more time": func(w *appWorld, app *appv1.MyApp) {
			w.change(app, func(app *appv1.MyApp) { app.Spec.Migration.Deadline.Duration = time.Hour })
		},
		"by another image": func(w *appWorld, app *appv1.MyApp) { w.change(app, image("nginx:1.27")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			app := w.migrated(false)
			w.change(app, image("nginx:1.26"))
			failed := w.migration()
			w.endMigration("oh")
			w.again(app)
			again(w, app)
			w.removePods()
			app = w.again(app)
			w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
			job := w.migration()
			if job.UID == failed.UID || variable(job, naming.EnvImageFrom) != "nginx:1.25" {
				t.Errorf("it is not tried again: %s", jsonOf(t, job))
			}
			w.rests(w.again(app))
			w.endMigration("")
			app = w.again(app)
			w.says(app, appv1.ConditionMigrated, metav1.ConditionTrue, appv1.ReasonMigrated)
			if w.runs(app) != app.Spec.Image {
				t.Errorf("it runs %s", w.runs(app))
			}
			w.playDeployment(app)
			w.rests(w.again(app))
		})
	}
}

// Setting the image back to what runs ends the matter, whether the migration has failed, runs, or has not begun.
func TestSettingTheImageBackEndsTheMatter(t *testing.T) {
	for name, come := range map[string]func(*appWorld, *appv1.MyApp){
		"after it has failed": func(w *appWorld, app *appv1.MyApp) { w.endMigration("oh"); w.again(app) },
		"while it runs":       func(w *appWorld, app *appv1.MyApp) { w.startMigration(w.migration()); w.again(app) },
		"before it has begun": func(w *appWorld, _ *appv1.MyApp) {
			w.must(w.api.Delete(w.Context(), w.migration(),
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			app := w.migrated(false)
			before := w.deployment(app)
			w.change(app, image("nginx:1.26"))
			come(w, app)
			app = w.change(app, image("nginx:1.25"))
			w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
			w.says(app, appv1.ConditionMigrated, metav1.ConditionTrue, appv1.ReasonMigrated)
			if jobs := w.migrations(); len(jobs) > 0 {
				t.Errorf("there are still %s", jsonOf(t, jobs))
			}
			if was, is := jsonOf(t, before.Spec), jsonOf(t, w.deployment(app).Spec); was != is {
				t.Errorf("it was\n%s\nand is\n%s", was, is)
			}
			if m := app.Status.Migration; !strings.Contains(m.Message, "withdrawn") {
				t.Errorf("it says %s", jsonOf(t, m))
			}
			w.rests(app)

			// And it can be tried once more, but not beside a Pod that has not ended.
			app = w.change(app, image("nginx:1.26"))
			if w.pods(map[string]string{naming.LabelComponent: naming.ComponentMigrate}) != nil &&
				name == "while it runs" {
				w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
				if len(w.migrations()) > 0 {
					t.Error("two migrations run at once")
				}
			}
			w.removePods()
			w.again(app)
			w.endMigration("")
			app = w.again(app)
			if w.runs(app) != "nginx:1.26" {
				t.Errorf("it runs %s", w.runs(app))
			}
		})
	}
}

// A migration that hangs or is killed is a failed one, and what is known of why is told.
func TestAMigrationThatHangsOrIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*appWorld, *batchv1.Job)
		want string
	}{
		"it hangs": {func(w *appWorld, job *batchv1.Job) {
			w.setPod(w.startMigration(job), func(s *corev1.PodStatus) {
				s.Phase, s.Reason = corev1.PodFailed, "DeadlineExceeded"
				s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{
						ExitCode: 143, Reason: "Error", Message: "waits for a lock",
					}}}}
			})
		}, "took longer than migration.deadline and was stopped with exit code 143: waits for a lock"},
		"its Pod is deleted": {func(*appWorld, *batchv1.Job) {}, "was removed before it had ended"},
		"it has no memory": {func(w *appWorld, job *batchv1.Job) {
			w.setPod(w.startMigration(job), func(s *corev1.PodStatus) {
				s.Phase = corev1.PodFailed
				s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
			})
		}, "exit code 137 (OOMKilled)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newAppWorld(t)
			app := w.migrated(false)
			w.change(app, image("nginx:1.26"))
			w.removePods()
			c.end(w, w.migration())
			w.endJob(w.migration(), false)
			app = w.again(app)
			if message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse,
				appv1.ReasonMigrationFailed); !strings.Contains(message, c.want) {
				t.Errorf("it says %q, want %q", message, c.want)
			}
			if w.runs(app) != "nginx:1.25" {
				t.Errorf("it runs %s", w.runs(app))
			}
			w.rests(app)
		})
	}
}

// Another image while a migration runs: that ends first, and then the other one's begins, from what runs.
func TestNoTwoMigrationsRunAtOnce(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(false)
	w.change(app, image("nginx:1.26"))
	first := w.migration()
	w.removePods()
	app = w.change(app, image("nginx:1.27")) // before the Job has a Pod, and then while that runs
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
	w.startMigration(w.goes("nginx:1.25", "nginx:1.26"))
	app = w.again(app)
	message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
	if job := w.migration(); job.Name != first.Name || !strings.Contains(message, first.Name) {
		t.Errorf("%s runs; it says %q", job.Name, message)
	}
	w.endMigration("")
	app = w.again(app)
	jobs := w.migrations()
	i := slices.IndexFunc(jobs, func(j batchv1.Job) bool { return variable(&j, naming.EnvImageTo) == "nginx:1.27" })
	if i < 0 || variable(&jobs[i], naming.EnvImageFrom) != "nginx:1.25" || w.runs(app) != "nginx:1.25" {
		t.Fatalf("the Jobs are %s", jsonOf(t, jobs))
	}
	w.removePods()
	app = w.again(app)
	w.endMigration("")
	app = w.again(app)
	if w.runs(app) != "nginx:1.27" {
		t.Errorf("it runs %s", w.runs(app))
	}
}

// Going back to an older image runs that one's migration too, and there again is not the same Job as the first time.
func TestGoingBackAndThereAgain(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(false)
	names := map[string]bool{w.migration().Name: true}
	from := "nginx:1.25"
	for _, to := range []string{"nginx:1.26", "nginx:1.25", "nginx:1.26", "nginx:1.25"} {
		w.removePods()
		app = w.change(app, image(to))
		job := w.migration()
		if names[job.Name] || variable(job, naming.EnvImageFrom) != from || variable(job, naming.EnvImageTo) != to {
			t.Fatalf("%s goes from %s to %s, want one of its own from %s to %s",
				job.Name, variable(job, naming.EnvImageFrom), variable(job, naming.EnvImageTo), from, to)
		}
		names[job.Name] = true
		w.endMigration("")
		app = w.again(app)
		if w.runs(app) != to {
			t.Fatalf("it runs %s, want %s", w.runs(app), to)
		}
		w.playDeployment(app)
		app = w.again(app)
		w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
		from = to
	}
	w.rests(app)
}

// What is no new version runs no migration.
func TestWhatIsNoNewVersionRunsNoMigration(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(false)
	job := w.migration().UID
	app = w.change(app, func(app *appv1.MyApp) {
		app.Spec.Replicas, app.Spec.Env = ptr.To[int32](2), []corev1.EnvVar{{Name: "A", Value: "1"}}
		app.Spec.Migration.Deadline.Duration, app.Spec.Leader = time.Hour, true
	})
	w.must(w.api.Delete(t.Context(), w.deployment(app)))
	app = w.again(app)
	if w.migration().UID != job || w.runs(app) != "nginx:1.25" {
		t.Error("a migration has run")
	}
	w.says(app, appv1.ConditionMigrated, metav1.ConditionTrue, appv1.ReasonMigrated)
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Migration = nil })
	app = w.change(app, image("nginx:1.26"))
	if w.runs(app) != "nginx:1.26" || len(app.Status.Conditions) != 1 {
		t.Errorf("without a migration it runs %s and says %s", w.runs(app), jsonOf(t, app.Status.Conditions))
	}
}

// Without a backup that was asked for there is no migration; each way out is one that the documentation names.
func TestABackupThatFails(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(true)
	app = w.change(app, image("nginx:1.26"))
	w.endBackup(&w.backups()[0], "the bucket is full")
	app = w.again(app)
	if message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse,
		appv1.ReasonBackupFailed); !strings.Contains(message, "the bucket is full") {
		t.Errorf("it says %q", message)
	}
	if w.runs(app) != "nginx:1.25" || app.Status.Phase != "Degraded" {
		t.Errorf("it runs %s, %s", w.runs(app), app.Status.Phase)
	}
	w.rests(app)
	app = w.change(app, func(app *appv1.MyApp) { app.Annotations = map[string]string{naming.AnnotationRetry: "1"} })
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonBackingUp)
	if len(w.backups()) != 2 {
		t.Errorf("there are %d backups, want another one", len(w.backups()))
	}
	app = w.change(app, func(app *appv1.MyApp) { app.Spec.Migration.Backup = false })
	w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonMigrating)
}

func TestNoBackupCanBeTakenWhereThereIsNoArchive(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(true)
	db := &v1.SampleDB{}
	w.read("shop", db)
	withoutBackup(db)
	w.must(w.api.Update(t.Context(), db))
	app = w.change(app, image("nginx:1.26"))
	if message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse,
		appv1.ReasonBackupFailed); !strings.Contains(message, "SampleDB shop has no archive") {
		t.Errorf("it says %q", message)
	}
	// Nor of a server in another namespace, where nobody has asked for it.
	pg := &pgv1.PostgreSQL{}
	w.read("shop", pg)
	pg.Status.Server.Namespace = "elsewhere"
	w.must(w.api.Status().Update(t.Context(), pg))
	app = w.again(app)
	if message := w.says(app, appv1.ConditionMigrated, metav1.ConditionFalse,
		appv1.ReasonBackupFailed); !strings.Contains(message, "of namespace elsewhere") {
		t.Errorf("it says %q", message)
	}
	w.setPostgres("shop", true)
	db.Spec.Backup = &v1.BackupSpec{}
	w.must(w.api.Update(t.Context(), db))
	w.says(w.again(app), appv1.ConditionMigrated, metav1.ConditionFalse, appv1.ReasonBackingUp)
}

// The Job's name is needed and somebody else has it.
func TestAForeignJobIsLeftAlone(t *testing.T) {
	w := newAppWorld(t)
	app := w.migrated(false)
	w.change(app, image("nginx:1.26"))
	theirs := w.migration().DeepCopy()
	w.must(w.api.Delete(t.Context(), theirs, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	theirs = &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: theirs.Name}, Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "theirs"}},
			}}},
	}
	w.must(w.api.Create(t.Context(), theirs))
	w.removePods()
	app = w.again(app)
	if message := w.ready(app, metav1.ConditionFalse, appv1.ReasonNameTaken); !strings.Contains(message, theirs.Name) {
		t.Errorf("it says %q", message)
	}
	if w.runs(app) != "nginx:1.25" {
		t.Errorf("it runs %s", w.runs(app))
	}
}

package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/myapp"
)

// appWorld is a world with a reconciler of MyApps. The tests play the controllers of Deployments,
// Jobs, databases and backups.
type appWorld struct {
	*world
	apps *myapp.Reconciler
	// broken refuses writes whose object has this name, as an API server does that has trouble.
	broken *broken
	// told has one for each time that the controller was told of a changed Secret.
	told chan struct{}
}

func newAppWorld(t *testing.T) *appWorld {
	t.Helper()
	w := &appWorld{world: newWorld(t)}
	w.restart()
	return w
}

// restart starts the operator anew, with nothing in memory.
func (w *appWorld) restart() {
	r := w.reconciler
	w.broken = &broken{Client: r.Client}
	follower, told := w.follower("sample-app")
	w.told = told
	w.apps = &myapp.Reconciler{
		Client: w.broken, Reader: r.Reader, Secrets: follower, Events: r.Events, Now: func() time.Time { return w.now },
	}
}

// broken is a client of an API server that does not take some writes, and of a cache that may be late.
type broken struct {
	client.Client
	name string
	// late is a Deployment as the cache still has it, nil where it is not late.
	late *appsv1.Deployment
}

func (b *broken) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if d, ok := object.(*appsv1.Deployment); ok && b.late != nil {
		b.late.DeepCopyInto(d)
		return nil
	}
	return b.Client.Get(ctx, key, object, opts...)
}

var errBroken = errors.New("the webhook does not answer")

func (b *broken) Patch(
	ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption,
) error {
	if b.name != "" && object.GetName() == b.name {
		return errBroken
	}
	return b.Client.Patch(ctx, object, patch, opts...)
}

func (b *broken) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	if b.name != "" && object.GetName() == b.name {
		return errBroken
	}
	return b.Client.Create(ctx, object, opts...)
}

// app makes the MyApp of the article, changed by modifiers.
func (w *appWorld) app(modify ...func(*appv1.MyApp)) *appv1.MyApp {
	app := &appv1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sample-app"},
		Spec: appv1.MyAppSpec{
			Replicas: ptr.To[int32](3), Image: "nginx:1.25", Port: 80,
			Service: appv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Port: 80},
		},
	}
	for _, m := range modify {
		m(app)
	}
	return app
}

// made creates a MyApp and reconciles it once, or until it is known which versions its Secrets have.
func (w *appWorld) made(modify ...func(*appv1.MyApp)) *appv1.MyApp {
	w.Helper()
	app := w.app(modify...)
	w.must(w.api.Create(w.Context(), app))
	app = w.again(app)
	for {
		if _, settled := w.apps.Secrets.Versions(client.ObjectKeyFromObject(app)); settled {
			return w.again(app)
		}
		time.Sleep(time.Millisecond)
	}
}

// served is made, and plays the cluster until all Pods serve.
func (w *appWorld) served(modify ...func(*appv1.MyApp)) *appv1.MyApp {
	w.Helper()
	app := w.made(modify...)
	w.playDeployment(app)
	app = w.again(app)
	w.ready(app, metav1.ConditionTrue, appv1.ReasonReady)
	w.drainEvents()
	w.writes.take()
	return app
}

// try reconciles a MyApp once.
func (w *appWorld) try(app *appv1.MyApp) error {
	w.now = w.now.Add(10 * time.Second)
	_, err := w.apps.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(app)})
	return err
}

// again reconciles a MyApp once and returns it as it is then.
func (w *appWorld) again(app *appv1.MyApp) *appv1.MyApp {
	w.Helper()
	w.must(w.try(app))
	return w.fresh(app)
}

// fresh is the MyApp as it is now.
func (w *appWorld) fresh(app *appv1.MyApp) *appv1.MyApp {
	w.Helper()
	out := &appv1.MyApp{}
	w.read(app.Name, out)
	return out
}

// change edits a MyApp and reconciles it once.
func (w *appWorld) change(app *appv1.MyApp, f func(*appv1.MyApp)) *appv1.MyApp {
	w.Helper()
	now := w.fresh(app)
	f(now)
	w.must(w.api.Update(w.Context(), now))
	return w.again(now)
}

func image(name string) func(*appv1.MyApp) { return func(app *appv1.MyApp) { app.Spec.Image = name } }

// rests fails where another reconcile writes something.
func (w *appWorld) rests(app *appv1.MyApp) {
	w.Helper()
	w.writes.take()
	w.drainEvents()
	for range 2 {
		w.again(app)
	}
	if writes := w.writes.take(); len(writes) > 0 {
		w.Errorf("at rest it writes: %v", writes)
	}
	if events := w.drainEvents(); events != "" {
		w.Errorf("at rest it tells: %s", events)
	}
}

// ready checks the condition Ready, and returns its message.
func (w *appWorld) ready(app *appv1.MyApp, status metav1.ConditionStatus, reason string) string {
	w.Helper()
	return w.says(app, appv1.ConditionReady, status, reason)
}

// says checks a condition, and returns its message.
func (w *appWorld) says(app *appv1.MyApp, kind string, status metav1.ConditionStatus, reason string) string {
	w.Helper()
	c := meta.FindStatusCondition(app.Status.Conditions, kind)
	if c == nil {
		w.Fatalf("there is no condition %s; status: %+v", kind, app.Status)
	}
	if c.Status != status || c.Reason != reason {
		w.Fatalf("%s is %s for %s (%s), want %s for %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
	return c.Message
}

func (w *appWorld) deployment(app *appv1.MyApp) *appsv1.Deployment {
	w.Helper()
	d := &appsv1.Deployment{}
	w.read(app.Name, d)
	return d
}

// runs is the image that the Deployment runs.
func (w *appWorld) runs(app *appv1.MyApp) string {
	w.Helper()
	return w.deployment(app).Spec.Template.Spec.Containers[0].Image
}

// playDeployment does what Kubernetes' controllers and kubelets would: Pods of the present template, all of them ready.
func (w *appWorld) playDeployment(app *appv1.MyApp) {
	w.Helper()
	d := w.deployment(app)
	template := d.Spec.Template.Annotations[naming.AnnotationTemplate]
	wanted := map[string]bool{}
	for i := range int(*d.Spec.Replicas) {
		name := fmt.Sprintf("%s-%s-%d", app.Name, template, i)
		wanted[name] = true
		if !w.find(name, &corev1.Pod{}) {
			w.runAppPod(d, name)
		}
	}
	for _, pod := range w.pods(naming.AppSelector(app.Name)) {
		if !wanted[pod.Name] {
			w.must(w.api.Delete(w.Context(), &pod, client.GracePeriodSeconds(0)))
		}
	}
	w.setCounts(app, *d.Spec.Replicas, *d.Spec.Replicas, *d.Spec.Replicas)
}

// runAppPod makes a Pod of a Deployment, which is ready.
func (w *appWorld) runAppPod(d *appsv1.Deployment, name string) {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = w.namespace, name
	w.must(w.api.Create(w.Context(), pod))
	w.setPod(name, func(s *corev1.PodStatus) { s.Phase, s.Conditions = corev1.PodRunning, isReady(true) })
}

func isReady(yes bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if yes {
		status = corev1.ConditionTrue
	}
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
}

func (w *appWorld) setPod(name string, f func(*corev1.PodStatus)) {
	w.Helper()
	pod := &corev1.Pod{}
	w.read(name, pod)
	f(&pod.Status)
	w.must(w.api.Status().Update(w.Context(), pod))
}

func (w *appWorld) pods(labels map[string]string) []corev1.Pod {
	w.Helper()
	var list corev1.PodList
	w.must(w.api.List(w.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels(labels)))
	return list.Items
}

// setCounts sets what the Deployment's controller says of its Pods.
func (w *appWorld) setCounts(app *appv1.MyApp, replicas, updated, ready int32) {
	w.Helper()
	d := w.deployment(app)
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: updated, ReadyReplicas: ready,
		AvailableReplicas: ready, UnavailableReplicas: max(0, replicas-ready),
	}
	if ready == replicas && updated == replicas {
		d.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}
	}
	w.must(w.api.Status().Update(w.Context(), d))
}

// postgres makes a PostgreSQL and the SampleDB that it lies on, ready, and with an archive.
func (w *appWorld) postgres(name string) {
	w.Helper()
	db := w.sampleDB(name, func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{} })
	w.must(w.api.Create(w.Context(), db))
	pg := &pgv1.PostgreSQL{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}, Spec: pgv1.PostgreSQLSpec{
		DB: "shop", User: "shop", Password: "shop",
	}}
	w.must(w.api.Create(w.Context(), pg))
	w.setPostgres(name, true)
}

func (w *appWorld) setPostgres(name string, ready bool) {
	w.Helper()
	pg := &pgv1.PostgreSQL{}
	w.read(name, pg)
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	pg.Status.Server, pg.Status.SecretRevision = &pgv1.ServerReference{Name: name}, "1-0a0b"
	meta.SetStatusCondition(&pg.Status.Conditions,
		metav1.Condition{Type: pgv1.ConditionReady, Status: status, Reason: "Test", Message: "the test's words"})
	w.must(w.api.Status().Update(w.Context(), pg))
}

// withMigration gives an application a database and a migration, with a backup before it or without.
func withMigration(backup bool) func(*appv1.MyApp) {
	return func(app *appv1.MyApp) {
		app.Spec.Database = &appv1.DatabaseReference{Kind: appv1.DatabasePostgreSQL, Name: "shop"}
		app.Spec.Migration = &appv1.MigrationSpec{
			Command: []string{"/shop", "migrate"}, Backup: backup,
			Deadline: metav1.Duration{Duration: 10 * time.Minute},
		}
	}
}

// migrations are the Jobs of migrations that there are.
func (w *appWorld) migrations() []batchv1.Job {
	w.Helper()
	var list batchv1.JobList
	w.must(w.api.List(w.Context(), &list, client.InNamespace(w.namespace),
		client.MatchingLabels{naming.LabelComponent: naming.ComponentMigrate}))
	var out []batchv1.Job
	for _, job := range list.Items {
		if job.DeletionTimestamp == nil {
			out = append(out, job)
		}
	}
	return out
}

// migration is the one Job of a migration that there is.
func (w *appWorld) migration() *batchv1.Job {
	w.Helper()
	jobs := w.migrations()
	if len(jobs) != 1 {
		var names []string
		for _, job := range jobs {
			names = append(names, job.Name)
		}
		w.Fatalf("there are the Jobs %v, want one", names)
	}
	return &jobs[0]
}

// startMigration makes the Pod of a Job, which runs.
func (w *appWorld) startMigration(job *batchv1.Job) string {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = w.namespace, job.Name+"-abcde"
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	w.must(w.api.Create(w.Context(), pod))
	w.setPod(pod.Name, func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })
	now := metav1.NewTime(w.now).Rfc3339Copy()
	job.Status.StartTime, job.Status.Active = &now, 1
	w.must(w.api.Status().Update(w.Context(), job))
	return pod.Name
}

// endMigration ends a Job: well without words, else with them as its Pod's last.
func (w *appWorld) endMigration(words string) {
	w.Helper()
	job := w.migration()
	pod := job.Name + "-abcde"
	if !w.find(pod, &corev1.Pod{}) {
		w.startMigration(job)
		w.read(job.Name, job)
	}
	phase, code := corev1.PodSucceeded, int32(0)
	if words != "" {
		phase, code = corev1.PodFailed, 1
	}
	w.setPod(pod, func(s *corev1.PodStatus) {
		s.Phase = phase
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerMigrate, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: words}}}}
	})
	w.endJob(job, words == "")
}

// endJob sets what the controller of Jobs says of one that has ended.
func (w *appWorld) endJob(job *batchv1.Job, well bool) {
	w.Helper()
	now := metav1.NewTime(w.now).Rfc3339Copy()
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	job.Status.Active = 0
	if well {
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
		}
	} else {
		job.Status.Failed = 1
		for _, kind := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded,
				Message: "Job has reached the specified backoff limit"})
		}
	}
	w.must(w.api.Status().Update(w.Context(), job))
}

// backups are the DatabaseBackups that there are.
func (w *appWorld) backups() []v1.DatabaseBackup {
	w.Helper()
	var list v1.DatabaseBackupList
	w.must(w.api.List(w.Context(), &list, client.InNamespace(w.namespace)))
	return list.Items
}

// endBackup ends a DatabaseBackup, well without words.
func (w *appWorld) endBackup(backup *v1.DatabaseBackup, words string) {
	w.Helper()
	now := metav1.NewTime(w.now).Rfc3339Copy()
	backup.Status.CompletedAt = &now
	c := metav1.Condition{
		Type: v1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1.ReasonCompleted, Message: "it is there",
	}
	if words != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1.ReasonFailed, words
	}
	meta.SetStatusCondition(&backup.Status.Conditions, c)
	w.must(w.api.Status().Update(w.Context(), backup))
}

// leaders are the Pods that bear the leader's label.
func (w *appWorld) leaders(app *appv1.MyApp) string {
	w.Helper()
	var names []string
	for _, pod := range w.pods(naming.LeaderSelector(app.Name)) {
		names = append(names, pod.Name)
	}
	return strings.Join(names, " ")
}

// shows checks that the status has these pieces of JSON in it.
func (w *appWorld) shows(app *appv1.MyApp, pieces ...string) {
	w.Helper()
	status := jsonOf(w.T, app.Status)
	for _, piece := range pieces {
		if !strings.Contains(status, piece) {
			w.Errorf("the status has no %s: %s", piece, status)
		}
	}
}

// tells checks that there have been these events since the last time.
func (w *appWorld) tells(words ...string) {
	w.Helper()
	told := w.drainEvents()
	for _, word := range words {
		if !strings.Contains(told, word) {
			w.Errorf("it does not tell %q:\n%s", word, told)
		}
	}
}

// goes checks from which image to which the one migration goes.
func (w *appWorld) goes(from, to string) *batchv1.Job {
	w.Helper()
	job := w.migration()
	if is, was := variable(job, naming.EnvImageTo), variable(job, naming.EnvImageFrom); is != to || was != from {
		w.Errorf("%s goes from %q to %q, want from %q to %q", job.Name, was, is, from, to)
	}
	return job
}

// jsonOf is an object as users see it.
func jsonOf(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

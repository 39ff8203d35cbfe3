// Package verification proves backups: a DatabaseBackup that is complete and is to be verified gets a Job, whose Pod
// restores it into a scratch volume, checks it and asks it questions. What it finds goes into the status. It must not
// know how a backup is restored (that is internal/backup's) nor how the Pod looks (that is internal/desired's).
package verification

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/controller/written"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Reconciler reconciles DatabaseBackups that are complete. All fields must be set.
type Reconciler struct {
	// Client reads from the cache and writes, Reader reads past the cache.
	Client client.Client
	Reader client.Reader
	// Pods asks the Pods of verifications.
	Pods pods.Asker
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
}

// pauseRunning is until a verification is looked at again when nothing happens before.
const pauseRunning = 10 * time.Second

// The events of a DatabaseBackup about its verification.
const (
	eventVerified           = "Verified"           // it can be restored
	eventVerificationFailed = "VerificationFailed" // it can't
	eventActionReported     = "Reconcile"          // the action that every event is reported under
)

// Reconcile brings the verification of one DatabaseBackup nearer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backup := &v1.DatabaseBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, backup); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	v, db, err := r.observe(ctx, backup)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(v)
	if d.create {
		if err := r.create(ctx, db, backup, v.asked); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.report(ctx, backup, v, d); err != nil || d.reason == "" || d.over {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pauseRunning}, nil
}

func (r *Reconciler) create(ctx context.Context, db *v1.SampleDB, backup *v1.DatabaseBackup, asked string) error {
	job, err := desired.VerifyJob(db, backup, r.Settings, asked)
	if err != nil {
		return err
	}
	return r.jobs().Create(ctx, job)
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

// observe reads what the decision depends on.
func (r *Reconciler) observe(ctx context.Context, backup *v1.DatabaseBackup) (view, *v1.SampleDB, error) {
	v := view{
		complete: meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete) &&
			backup.Status.ID != "" && backup.DeletionTimestamp == nil,
		asked: asked(backup),
	}
	if old := backup.Status.Verification; old != nil && old.CompletedAt != nil {
		v.done = old.Asked
	}
	if !v.complete || v.asked == v.done {
		return v, nil, nil
	}
	db := &v1.SampleDB{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: backup.Namespace, Name: backup.Spec.SampleDB}, db)
	if client.IgnoreNotFound(err) != nil {
		return v, nil, fmt.Errorf("read the SampleDB: %w", err)
	}
	v.possible = err == nil && desired.Backup(db) != nil && backup.Status.Archive != nil &&
		backup.Status.Archive.Path == naming.ArchivePath(db.Namespace, db.Name, string(db.UID))
	err = r.observeJob(ctx, backup, &v)
	return v, db, err
}

// asked names what is asked for, "" for nothing.
func asked(backup *v1.DatabaseBackup) string {
	request := backup.Annotations[naming.AnnotationVerify]
	if request == "" && backup.Spec.Verify {
		request = "spec.verify"
	}
	return request
}

func (r *Reconciler) observeJob(ctx context.Context, backup *v1.DatabaseBackup, v *view) error {
	name := types.NamespacedName{Namespace: backup.Namespace, Name: desired.VerifyJobName(backup, v.asked)}
	job, err := r.jobs().Find(ctx, name)
	if job == nil || err != nil {
		return err
	}
	var list corev1.PodList
	err = r.Client.List(ctx, &list, client.InNamespace(backup.Namespace), client.MatchingLabels{
		naming.LabelSampleDB: backup.Spec.SampleDB, naming.LabelComponent: naming.ComponentVerify,
	})
	if err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	run := jobs.Of(job, list.Items)
	v.job, v.name, v.started = jobRunning, job.Name, job.CreationTimestamp
	if run.Ended() {
		v.job, v.words = jobEnded, run.EndMessage()
	}
	for i := range run.Pods {
		pod := &run.Pods[i]
		v.observePod(pod)
		if p := pods.Ask(ctx, r.Client, r.Pods, naming.IdentityRestore, pod); p != nil {
			v.words = pods.Sentence(*p)
		}
	}
	return nil
}

// observePod takes what a Pod has left, or what keeps it from running. An init container that has failed is the last to
// run; one that has not leaves what it has found to the next.
func (v *view) observePod(pod *corev1.Pod) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			v.words = c.Message
		}
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if ended := c.State.Terminated; ended == nil || ended.ExitCode != 0 {
			v.observeContainer(c)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		v.observeContainer(c)
		if c.State.Running != nil {
			v.words = "looks through the restored data, and asks the assertions"
		}
	}
}

func (v *view) observeContainer(c corev1.ContainerStatus) {
	switch ended := c.State.Terminated; {
	case ended != nil:
		v.job = jobEnded
		if result := jobs.Result[protocol.VerifyResult](ended.Message); result != nil {
			v.result = result
		}
		v.words = cmp.Or(v.words, ended.Message)
	case c.State.Waiting != nil:
		v.words = cmp.Or(c.State.Waiting.Message, v.words)
	}
}

// report writes the status where it has changed, and then the event.
func (r *Reconciler) report(ctx context.Context, backup *v1.DatabaseBackup, v view, d decision) error {
	if d.reason == "" {
		return nil
	}
	now := status(backup, v, d, r.Now())
	if equality.Semantic.DeepEqual(backup.Status, now) {
		return nil
	}
	changed := backup.DeepCopy()
	changed.Status = now
	if there, err := written.Shared(ctx, r.Client, backup, changed); err != nil || !there {
		return err
	}
	switch {
	case d.over && d.reason == v1.ReasonVerified:
		r.Events.Eventf(backup, nil, corev1.EventTypeNormal, eventVerified, eventActionReported, "%s", d.message)
	case d.over:
		r.Events.Eventf(backup, nil, corev1.EventTypeWarning, eventVerificationFailed,
			eventActionReported, "%s", d.message)
	}
	return nil
}

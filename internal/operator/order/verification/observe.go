package verification

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

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
	if err == nil && desired.Backup(db) != nil && backup.Status.Archive != nil {
		first, _ := naming.FirstArchivePath(backup.Status.Archive.Path)
		v.possible = first == naming.ArchivePath(db.Namespace, db.Name, string(db.UID))
		v.stopped = db.Stops()
		if backup.Status.Archive.Path != desired.PresentArchivePath(db) && db.Spec.Image != "" {
			v.former = backup.Status.ServerVersion
		}
	}
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
	find := r.Jobs().Find
	if waitsItsTurn(backup) {
		find = r.Jobs().FindCached
	}
	job, err := find(ctx, name)
	if job == nil || err != nil {
		return err
	}
	all, err := index.Pods(ctx, r.Client, backup.Namespace, map[string]string{
		naming.LabelSampleDB: backup.Spec.SampleDB, naming.LabelComponent: naming.ComponentVerify,
	})
	if err != nil {
		return err
	}
	run := jobs.Of(job, all)
	v.job, v.name, v.started = jobRunning, job.Name, job.CreationTimestamp
	switch run.State() {
	case jobs.Late:
		v.job, v.late = jobEnded, desired.VerifyDeadline(backup)
	case jobs.Complete, jobs.Failed:
		v.job, v.words = jobEnded, run.EndMessage()
	case jobs.None, jobs.Running, jobs.Ending:
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

// waitsItsTurn says that the verification was last found to wait for its turn. It has no Job then, or one that the
// cache will have: a second one of the name can't be made.
func waitsItsTurn(backup *v1.DatabaseBackup) bool {
	was := meta.FindStatusCondition(backup.Status.Conditions, v1.ConditionVerified)
	return was != nil && was.Reason == v1.ReasonQueued
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
			v.words = "checks the restored data and runs the assertions"
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

package myapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/freshness"
)

// The phases: summaries for people, computed from the conditions and never read.
const (
	phasePending   = "Pending"   // no Pod serves yet, and nobody has to do anything but wait or add what is missing
	phaseRunning   = "Running"   // all is as wanted
	phaseStopped   = "Stopped"   // no Pod runs, and none is wanted
	phaseUpdating  = "Updating"  // Pods are replaced, added or removed
	phaseMigrating = "Migrating" // the schema is brought to another version, while what was there serves
	phaseDegraded  = "Degraded"  // it serves, but the user has to do something
	phaseFailed    = "Failed"    // it does not serve, and the user has to do something
	phaseDeleting  = "Deleting"  // goes
)

// status is what the MyApp's status should be now. Where the reconcile did not get to see anything, all
// but why stays as it was.
func (s *scope) status() v1.MyAppStatus {
	out := *s.app.Status.DeepCopy()
	out.ObservedGeneration = s.app.Generation
	out.Selector = labels.SelectorFromSet(naming.AppSelector(s.app.Name)).String()
	if s.decision.Action != "" {
		s.setSeen(&out)
	}
	verdict := s.ready()
	meta.SetStatusCondition(&out.Conditions, s.condition(v1.ConditionReady, verdict))
	out.Phase = phase(verdict, out.ReadyReplicas)
	return out
}

// setSeen sets what follows from what was seen.
func (s *scope) setSeen(out *v1.MyAppStatus) {
	out.Deployed, out.Leader = s.deployed, s.leader
	out.Image, out.Replicas, out.ReadyReplicas = s.running(), 0, 0
	if d := s.seen.deployment; d != nil {
		out.Replicas, out.ReadyReplicas = d.Status.Replicas, d.Status.ReadyReplicas
	}
	out.Ready = fmt.Sprintf("%d/%d", out.ReadyReplicas, s.replicas())
	out.Migration = s.migration()
	if s.app.Spec.Migration == nil {
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionMigrated)
		return
	}
	meta.SetStatusCondition(&out.Conditions, s.condition(v1.ConditionMigrated, s.migrated()))
}

func (s *scope) condition(kind string, v verdict) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: v.status, Reason: v.reason, Message: freshness.Message(v.message),
		ObservedGeneration: s.app.Generation,
		LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	}
}

// migrated is true when the schema is that of the spec: also where something else keeps the Pods from being rolled out.
func (s *scope) migrated() verdict {
	if !s.view.needed || s.view.done() != "" {
		return yes(v1.ReasonMigrated, "the schema is that of "+s.app.Spec.Image)
	}
	return no(s.decision.Reason, s.decision.Message)
}

// migration is the last migration: the one that is under way or has failed, or else the last that was.
func (s *scope) migration() *v1.MigrationStatus {
	last := s.app.Status.Migration.DeepCopy()
	if !s.view.needed {
		if last != nil && last.CompletedAt == nil {
			last.Message = fmt.Sprintf("it was withdrawn before it had succeeded: %s keeps running", s.running())
		}
		return last
	}
	out := &v1.MigrationStatus{Image: s.app.Spec.Image, Message: s.decision.Message}
	if s.app.Spec.Migration.Backup && s.seen.backup != nil {
		out.Backup = s.seen.backup.Name
	}
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		if job.Name != s.view.current() {
			continue
		}
		out.Job, out.StartedAt = job.Name, job.Status.StartTime
		if job.Name == s.view.done() {
			at := cmp.Or(job.Status.CompletionTime, &metav1.Time{Time: s.now}).Rfc3339Copy()
			out.CompletedAt, out.Message = &at, "the schema is that of "+s.app.Spec.Image
		}
	}
	return keepBackup(out, last)
}

// keepBackup keeps the name of the backup that an attempt was made after, when the attempt has become another one
// since: its Job was already made then.
func keepBackup(out, last *v1.MigrationStatus) *v1.MigrationStatus {
	if out.Backup == "" && last != nil && last.Image == out.Image && last.Job != "" && last.Job == out.Job {
		out.Backup = last.Backup
	}
	return out
}

// Reasons of Ready by the phase that they stand for. Those of none of them are for the user to mend.
var (
	updatingReasons  = []string{v1.ReasonUpdating, v1.ReasonScaling}
	migratingReasons = []string{v1.ReasonMigrating, v1.ReasonBackingUp, v1.ReasonDatabaseNotReady}
	// waitingReasons may end without the user where nothing serves yet.
	waitingReasons = []string{
		v1.ReasonStarting, v1.ReasonDatabaseNotReady, v1.ReasonDatabaseNotFound, v1.ReasonConfigNotFound,
		v1.ReasonUnschedulable, v1.ReasonRetrying,
	}
)

// phase is what Ready amounts to, with so many Pods that serve.
func phase(v verdict, serving int32) string {
	switch {
	case v.reason == v1.ReasonDeleting:
		return phaseDeleting
	case v.reason == v1.ReasonStopped:
		return phaseStopped
	case v.status == metav1.ConditionTrue:
		return phaseRunning
	case serving == 0 && slices.Contains(waitingReasons, v.reason):
		return phasePending
	case slices.Contains(migratingReasons, v.reason):
		return phaseMigrating
	case slices.Contains(updatingReasons, v.reason):
		return phaseUpdating
	case serving > 0:
		return phaseDegraded
	}
	return phaseFailed
}

// current says that the Deployment is as it should be, as far as was seen before it was written.
func (s *scope) current() bool {
	have := s.seen.deployment
	return have != nil && s.wanted != nil &&
		have.Annotations[naming.AnnotationApplied] == s.wanted.Annotations[naming.AnnotationApplied] &&
		have.Spec.Replicas != nil && *have.Spec.Replicas == *s.wanted.Spec.Replicas &&
		have.Status.ObservedGeneration >= have.Generation
}

// report writes the status where it has changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	status := s.status()
	if equality.Semantic.DeepEqual(s.app.Status, status) {
		r.emitEvents(ctx, s, nil)
		return nil
	}
	changed := s.app.DeepCopy()
	changed.Status = status
	if there, err := freshness.Alone(ctx, r.Client, s.app, changed); err != nil || !there {
		return err
	}
	r.statuses.Note(changed, status)
	r.emitEvents(ctx, s, changes(s.app.Status, status))
	return nil
}

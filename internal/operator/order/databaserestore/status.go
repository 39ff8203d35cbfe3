package databaserestore

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
)

// status is what the status should be after a decision.
func (s *scope) status(d Decision) v1.DatabaseRestoreStatus {
	out := *s.restore.Status.DeepCopy()
	out.ObservedGeneration = s.restore.Generation
	out.Conditions = slices.Clone(out.Conditions)
	out.Phase = order.Phase(d.Reason, d.Over)
	out.Attempts = max(out.Attempts, int32(len(s.seen.run.Pods))) //nolint:gosec // so many Pods there never are
	now := metav1.NewTime(s.now).Rfc3339Copy()
	begun := d.Action == ActionCreate || s.seen.run.State() != jobs.None && !s.seen.foreign
	if begun && out.StartedAt == nil {
		out.StartedAt = &now
	}
	s.setFound(&out)
	complete := metav1.ConditionFalse
	if d.Over {
		out.CompletedAt = &now
		if d.Reason == v1.ReasonCompleted {
			complete = metav1.ConditionTrue
		}
	}
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: v1.ConditionComplete, Status: complete, Reason: d.Reason, Message: freshness.Message(d.Message),
		ObservedGeneration: s.restore.Generation, LastTransitionTime: now,
	})
	return out
}

// setFound takes what the Pod says, or has left.
func (s *scope) setFound(out *v1.DatabaseRestoreStatus) {
	if p := s.seen.progress; p != nil {
		out.Backup = cmp.Or(p.Backup, out.Backup)
		out.Progress = &v1.BackupProgress{Bytes: p.Done, Total: p.Total, Rate: p.Rate, Percent: pods.Percent(*p)}
	}
	if r := s.seen.restored; r != nil {
		out.Backup, out.LSN = cmp.Or(r.Backup, out.Backup), cmp.Or(r.LSN, out.LSN)
		if !r.Commit.IsZero() {
			commit := metav1.NewTime(r.Commit).Rfc3339Copy()
			out.LastTransactionAt = &commit
		}
	}
	r := s.seen.result
	if r == nil {
		return
	}
	out.Progress, out.Objects = nil, nil
	for _, o := range r.Objects {
		out.Objects = append(out.Objects, v1.RestoredObject{
			Name: o.Name, As: o.As, Kept: o.Kept, Rows: o.Rows, Present: o.Present, Compared: o.Compared,
			OnlyRestored: o.OnlyRestored, OnlyPresent: o.OnlyPresent, Different: o.Different, Message: o.Says,
		})
	}
}

// report writes the status where it has changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s *scope, d Decision) error {
	status := s.status(d)
	if equality.Semantic.DeepEqual(s.restore.Status, status) {
		return nil
	}
	changed := s.restore.DeepCopy()
	changed.Status = status
	if there, err := freshness.Alone(ctx, r.Client, s.restore, changed); err != nil || !there {
		return err
	}
	for _, e := range order.Changes(state(s.restore.Status), state(status)) {
		log.FromContext(ctx).Info("the state changed", "reason", e.Reason, "message", e.Message)
		r.Events.Eventf(s.restore, nil, e.Kind, e.Reason, order.ActionReported, "%s", e.Message)
	}
	return nil
}

package postgresql

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/freshness"
)

// The phases: summaries for people, computed and never read.
const (
	phasePending  = "Pending"
	phaseReady    = "Ready"
	phaseFailed   = "Failed"
	phaseDeleting = "Deleting"
)

// status is what the status should be after a decision.
func (s *scope) status(d Decision) pgv1.PostgreSQLStatus {
	out := *s.pg.Status.DeepCopy()
	out.ObservedGeneration = s.pg.Generation
	out.Conditions = slices.Clone(out.Conditions)
	out.Phase = phase(d)
	out.Server = reference(s.seen.db, s.pg)
	out.SecretRevision, out.ConnectionRevision = s.revision, s.connection
	if s.revision != "" {
		out.Secret = naming.AppSecret(s.pg.Name)
	}
	ready := metav1.ConditionFalse
	if d.Reason == pgv1.ReasonReady {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: pgv1.ConditionReady, Status: ready, Reason: d.Reason, Message: freshness.Message(d.Message),
		ObservedGeneration: s.pg.Generation, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
	return out
}

func phase(d Decision) string {
	switch d.Reason {
	case pgv1.ReasonReady:
		return phaseReady
	case pgv1.ReasonDeleting:
		return phaseDeleting
	case pgv1.ReasonReadingPasswords, pgv1.ReasonSecretNotFound, pgv1.ReasonServerNotReady, pgv1.ReasonServerNotFound,
		pgv1.ReasonServerStopped, pgv1.ReasonWritingSecret:
		return phasePending
	}
	return phaseFailed
}

// report writes the status where it has changed, and then the event.
func (r *Reconciler) report(ctx context.Context, s *scope, d Decision) error {
	status := s.status(d)
	if equality.Semantic.DeepEqual(s.pg.Status, status) {
		return nil
	}
	changed := s.pg.DeepCopy()
	changed.Status = status
	if there, err := freshness.Alone(ctx, r.Client, s.pg, changed); err != nil || !there {
		return err
	}
	r.statuses.Note(changed, changed.Status)
	if e := change(s.pg.Status, d); e.reason != "" {
		log.FromContext(ctx).Info("the state changed", "reason", e.reason, "message", e.message)
		r.Events.Eventf(s.pg, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
	return nil
}

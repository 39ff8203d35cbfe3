package postgresql

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/controller/written"
	"toban.dev/internal/naming"
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
	out.SecretRevision = s.revision
	if s.revision != "" {
		out.Secret = naming.AppSecret(s.pg.Name)
	}
	ready := metav1.ConditionFalse
	if d.Reason == pgv1.ReasonReady {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: pgv1.ConditionReady, Status: ready, Reason: d.Reason, Message: written.Message(d.Message),
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
		pgv1.ReasonWritingSecret:
		return phasePending
	}
	return phaseFailed
}

// eventActionReported is the action that every event is reported under.
const eventActionReported = "Reconcile"

// eventDataKept tells that the data of a PostgreSQL outlives it, although it was to go.
const eventDataKept = "DataKept"

type event struct{ kind, reason, message string }

// change is the event that a decision tells, with the reason of the condition; none while the reason stays.
func change(old pgv1.PostgreSQLStatus, d Decision) event {
	was := meta.FindStatusCondition(old.Conditions, pgv1.ConditionReady)
	if was != nil && was.Reason == d.Reason {
		return event{}
	}
	kind := corev1.EventTypeNormal
	if phase(d) == phaseFailed {
		kind = corev1.EventTypeWarning
	}
	return event{kind, d.Reason, d.Message}
}

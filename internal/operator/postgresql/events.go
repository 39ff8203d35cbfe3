package postgresql

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pgv1 "toban.dev/api/postgresql/v1"
)

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

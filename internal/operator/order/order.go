// Package order has what the kinds share whose objects ask for one piece of work: a DatabaseBackup, a DatabaseRestore,
// a FaultDrill. The work is begun, done by one Job, and over. Their status has a phase, the condition Complete and the
// same events; their controllers look at them for the same reasons.
package order

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// The phases, for people: they see one in `kubectl get`.
const (
	PhasePending   = "Pending"
	PhaseRunning   = "Running"
	PhaseCompleted = "Completed"
	PhaseFailed    = "Failed"
	PhaseCancelled = "Cancelled"
)

// Phase is that of a reason of the condition Complete. What is over will not be tried again.
func Phase(reason string, over bool) string {
	switch reason {
	case v1.ReasonCompleted:
		return PhaseCompleted
	case v1.ReasonCancelled:
		return PhaseCancelled
	case v1.ReasonRunning:
		return PhaseRunning
	}
	if over {
		return PhaseFailed
	}
	return PhasePending
}

// The events. They have the names of the reasons of the condition.
const (
	eventStarted   = "Started"   // its Job was made
	eventRetried   = "Retried"   // a Pod has failed, and another one tries
	eventCompleted = "Completed" // what was asked for is there
	eventCancelled = "Cancelled" // by spec.cancel
	eventFailed    = "Failed"    // it has ended without success

	// ActionReported is the action that every event is reported under.
	ActionReported = "Reconcile"
)

// Event is one: its kind is corev1.EventTypeNormal or corev1.EventTypeWarning.
type Event struct{ Kind, Reason, Message string }

// State is what events are told of: the same fields of each status.
type State struct {
	StartedAt, CompletedAt *metav1.Time
	Attempts               int32
	Conditions             []metav1.Condition
}

// Changes are the events that a change of the status tells. The message is that of the condition Complete.
func Changes(old, now State) []Event {
	c := meta.FindStatusCondition(now.Conditions, v1.ConditionComplete)
	var out []Event
	add := func(kind, reason string) { out = append(out, Event{kind, reason, c.Message}) }
	if old.StartedAt == nil && now.StartedAt != nil {
		add(corev1.EventTypeNormal, eventStarted)
	}
	if old.Attempts > 0 && now.Attempts > old.Attempts {
		add(corev1.EventTypeWarning, eventRetried)
	}
	if old.CompletedAt != nil || now.CompletedAt == nil {
		return out
	}
	switch c.Reason {
	case v1.ReasonCompleted:
		add(corev1.EventTypeNormal, eventCompleted)
	case v1.ReasonCancelled:
		add(corev1.EventTypeNormal, eventCancelled)
	default:
		add(corev1.EventTypeWarning, eventFailed)
	}
	return out
}

package databasebackup

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
)

// The events of a DatabaseBackup, all of them. They have the names of the reasons of its condition.
const (
	eventStarted        = "Started"   // its Job was made
	eventRetried        = "Retried"   // a Pod has failed, and another one tries
	eventCompleted      = "Completed" // it is in the archive
	eventCancelled      = "Cancelled" // by spec.cancel
	eventFailed         = "Failed"    // it has ended without a backup
	eventActionReported = "Reconcile" // the action that every event is reported under
)

type event struct{ kind, reason, message string }

// changes are the events that a change of the status tells.
func changes(old, now v1.DatabaseBackupStatus) []event {
	c := meta.FindStatusCondition(now.Conditions, v1.ConditionComplete)
	var out []event
	add := func(kind, reason string) { out = append(out, event{kind, reason, c.Message}) }
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

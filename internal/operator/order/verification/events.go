package verification

import (
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
)

// The events of a DatabaseBackup about its verification.
const (
	eventVerified           = "Verified"           // it can be restored
	eventVerificationFailed = "VerificationFailed" // it can't
	eventActionReported     = "Reconcile"          // the action that every event is reported under
)

type event struct{ kind, reason, message string }

// change is the event that a decision tells: how a verification has ended, and none before.
func change(d decision) event {
	switch {
	case d.over && d.reason == v1.ReasonVerified:
		return event{corev1.EventTypeNormal, eventVerified, d.message}
	case d.over:
		return event{corev1.EventTypeWarning, eventVerificationFailed, d.message}
	}
	return event{}
}

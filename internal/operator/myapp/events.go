package myapp

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/myapp/v1"
)

// The events of a MyApp, all of them.
const (
	eventRolling        = "Rolling"       // the Deployment becomes that of another version
	eventBackingUp      = "BackingUp"     // a DatabaseBackup was created before a migration
	eventMigrating      = "Migrating"     // the Job of a migration was created
	eventMigrated       = "Migrated"      // it has succeeded
	eventNotMigrated    = "NotMigrated"   // it has failed, or the backup before it
	eventReady          = "Ready"         // all is as wanted
	eventLeaderChanged  = "LeaderChanged" // another Pod leads, or none
	eventBlocked        = "Blocked"       // the user has to do something
	eventActionReported = "Reconcile"     // the action that every event is reported under
)

// event is one event about the MyApp.
type event struct{ kind, reason, message string }

// addEvent keeps an event of something that the operator does.
func (s *scope) addEvent(reason, message string) {
	s.events = append(s.events, event{corev1.EventTypeNormal, reason, message})
}

// changes are the events that a change of the status tells.
func changes(old, now v1.MyAppStatus) []event {
	var out []event
	add := func(kind, reason, message string) { out = append(out, event{kind, reason, message}) }
	if c := turned(old, now, v1.ConditionMigrated); c != nil {
		switch c.Reason {
		case v1.ReasonMigrated:
			add(corev1.EventTypeNormal, eventMigrated, c.Message)
		case v1.ReasonMigrationFailed, v1.ReasonBackupFailed:
			add(corev1.EventTypeWarning, eventNotMigrated, c.Message)
		}
	}
	switch {
	case old.Leader == now.Leader:
	case now.Leader == "":
		add(corev1.EventTypeWarning, eventLeaderChanged,
			fmt.Sprintf("%s no longer leads, and no other Pod can", old.Leader))
	case old.Leader == "":
		add(corev1.EventTypeNormal, eventLeaderChanged, now.Leader+" leads")
	default:
		add(corev1.EventTypeNormal, eventLeaderChanged, fmt.Sprintf("from %s to %s", old.Leader, now.Leader))
	}
	c := turned(old, now, v1.ConditionReady)
	switch {
	case c == nil || c.Reason == v1.ReasonMigrationFailed || c.Reason == v1.ReasonBackupFailed: // said above
	case c.Status == metav1.ConditionTrue:
		add(corev1.EventTypeNormal, eventReady, c.Message)
	case now.Phase == phaseFailed || now.Phase == phaseDegraded:
		add(corev1.EventTypeWarning, eventBlocked, fmt.Sprintf("%s: %s", c.Reason, c.Message))
	}
	return out
}

// turned is a condition whose status or reason has changed, else nil.
func turned(old, now v1.MyAppStatus, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(old.Conditions, kind), meta.FindStatusCondition(now.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// emitEvents emits what was done and what has changed.
func (r *Reconciler) emitEvents(ctx context.Context, s *scope, changed []event) {
	for _, e := range append(s.events, changed...) {
		log.FromContext(ctx).Info("the state changed", "reason", e.reason, "message", e.message)
		r.Events.Eventf(s.app, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
}

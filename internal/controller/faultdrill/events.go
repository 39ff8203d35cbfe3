package faultdrill

import (
	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/once"
)

// eventBroken is told of the SampleDB and of the drill: an instance was broken on purpose.
const eventBroken = "BrokenOnPurpose"

// state is what the events of a FaultDrill are told of. The events themselves are in once.
func state(s v1.FaultDrillStatus) once.State {
	return once.State{StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Conditions: s.Conditions}
}

// tell says that an instance was broken on purpose, so that who wonders finds out.
func (r *Reconciler) tell(s *scope) {
	r.Events.Eventf(s.seen.db, s.drill, corev1.EventTypeWarning, eventBroken, once.ActionReported,
		"FaultDrill %s: %s of %s", s.drill.Name, s.drill.Spec.Fault, s.target())
	r.Events.Eventf(s.drill, s.seen.db, corev1.EventTypeNormal, eventBroken, once.ActionReported,
		"%s of %s", s.drill.Spec.Fault, s.target())
}

package faultdrill

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/order"
)

// eventBroken is told of the SampleDB, of the drill, and of the MyApps whose leaders were killed: something was broken
// on purpose.
const eventBroken = "BrokenOnPurpose"

// state is what the events of a FaultDrill are told of. The events themselves are in once.
func state(s v1.FaultDrillStatus) order.State {
	return order.State{StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Conditions: s.Conditions}
}

// tell says what was broken on purpose, so that who wonders finds out.
func (r *Reconciler) tell(s *scope) {
	var all []string
	for _, a := range s.seen.targets {
		all = append(all, fmt.Sprintf("%s of %s", a.Fault, a.name))
	}
	done := strings.Join(all, ", ")
	r.Events.Eventf(s.seen.db, s.drill, corev1.EventTypeWarning, eventBroken, order.ActionReported,
		"FaultDrill %s: %s", s.drill.Name, done)
	for i := range s.seen.apps {
		r.Events.Eventf(&s.seen.apps[i], s.drill, corev1.EventTypeWarning, eventBroken, order.ActionReported,
			"FaultDrill %s: %s", s.drill.Name, done)
	}
	r.Events.Eventf(s.drill, s.seen.db, corev1.EventTypeNormal, eventBroken, order.ActionReported, "%s", done)
}

package faultdrill

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/operator/order"
)

// eventBroken is told of the SampleDB, of the drill, and of the MyApps whose leaders were killed: something was broken
// on purpose.
const eventBroken = "BrokenOnPurpose"

// tell says what was broken on purpose, so that who wonders finds out.
func (s *scope) tell() {
	var all []string
	for _, a := range s.seen.targets {
		all = append(all, fmt.Sprintf("%s of %s", a.Fault, a.name))
	}
	done := strings.Join(all, ", ")
	s.Events.Eventf(s.seen.db, s.Object, corev1.EventTypeWarning, eventBroken, order.ActionReported,
		"FaultDrill %s: %s", s.Object.Name, done)
	for i := range s.seen.apps {
		s.Events.Eventf(&s.seen.apps[i], s.Object, corev1.EventTypeWarning, eventBroken, order.ActionReported,
			"FaultDrill %s: %s", s.Object.Name, done)
	}
	s.Events.Eventf(s.Object, s.seen.db, corev1.EventTypeNormal, eventBroken, order.ActionReported, "%s", done)
}

// Package versions is about the version of PostgreSQL in a SampleDB: its image, updates, and the work in the databases
// after a change of the image.
package versions

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about changes of the version of a SampleDB.
type Topics struct {
	*world.Act
	*imageTopic
	*maintenanceTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{}
	b := base{a, all, others}
	*all = Topics{
		Act:              a,
		imageTopic:       &imageTopic{base: b, nodes: Pulls{a}},
		maintenanceTopic: &maintenanceTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type base struct {
	*world.Act
	all    *Topics
	others Others
}

// Others is what these topics ask other topics for.
type Others interface {
	// Readiness is what the condition Ready says.
	Readiness() world.Verdict
	// InstanceStatuses says how the instances are.
	InstanceStatuses() []v1.InstanceStatus
}

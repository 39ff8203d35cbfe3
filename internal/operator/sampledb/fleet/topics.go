// Package fleet is about the instances and readers of a SampleDB: how many there are, which of them restarts or gets
// another program, which one should lead, and what is wrong with their Pods and machines.
package fleet

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the instances and the readers of a SampleDB.
type Topics struct {
	*world.Act
	*fleetTopic
	*exchangeTopic
	*machinesTopic
	*handoverTopic
	*readersTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{}
	b := base{a, all, others}
	*all = Topics{
		Act:           a,
		fleetTopic:    &fleetTopic{base: b},
		exchangeTopic: &exchangeTopic{base: b},
		machinesTopic: &machinesTopic{base: b},
		handoverTopic: &handoverTopic{base: b},
		readersTopic:  &readersTopic{base: b},
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
}

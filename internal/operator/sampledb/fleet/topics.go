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
	all := &Topics{Act: a}
	b := base{Act: a, All: all, Others: others}
	all.fleetTopic = &fleetTopic{base: b}
	all.exchangeTopic = &exchangeTopic{base: b}
	all.machinesTopic = &machinesTopic{base: b}
	all.handoverTopic = &handoverTopic{base: b}
	all.readersTopic = &readersTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, Others]

// Others is what these topics ask other topics for.
type Others interface {
	// Readiness is what the condition Ready says.
	Readiness() world.Verdict
}

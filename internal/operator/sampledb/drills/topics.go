// Package drills makes the FaultDrills that a SampleDB asks for.
package drills

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the FaultDrills that a SampleDB asks for.
type Topics struct {
	*world.Act
	*drillsTopic
}

// New are the topics of one reconcile.
func New(a *world.Act) *Topics {
	all := &Topics{}
	b := base{a, all}
	*all = Topics{
		Act:         a,
		drillsTopic: &drillsTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and the other ones.
type base struct {
	*world.Act
	all *Topics
}

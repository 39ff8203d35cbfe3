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
func New(a *world.Act) *Topics { return &Topics{a, &drillsTopic{Act: a}} }

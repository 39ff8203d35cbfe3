// Package front is about the poolers of a SampleDB.
package front

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the poolers of a SampleDB.
type Topics struct {
	*world.Act
	*frontTopic
}

// New are the topics of one reconcile.
func New(a *world.Act) *Topics { return &Topics{a, &frontTopic{Act: a}} }

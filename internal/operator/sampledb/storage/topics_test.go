package storage

import (
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// topicsOf are the topics of a reconcile that knows this, and can do nothing.
func topicsOf(c world.Core) *Topics { return topicsOn(worldtest.Act(c)) }

// topicsOn are those of one that knows and acts with this.
func topicsOn(a *world.Act) *Topics { return New(a, nil) }

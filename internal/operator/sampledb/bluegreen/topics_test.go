package bluegreen

import (
	"toban.dev/internal/operator/sampledb/world"
)

// topicsOn are the topics of a reconcile that knows and acts with this.
func topicsOn(a *world.Act) *Topics { return New(a, nil) }

package major

import (
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// topicsOf are the topics of a reconcile that knows this, and can do nothing.
func topicsOf(c world.Core) *Topics { return New(worldtest.Act(c), nil) }

package sampledb

import (
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

// scopeOf is a reconcile that knows this, and can do nothing.
func scopeOf(c world.Core) *scope { return scopeOn(worldtest.Act(c)) }

// scopeOn is a reconcile that knows and acts with this.
func scopeOn(a *world.Act) *scope { return newScope(a.World, a.Effects) }

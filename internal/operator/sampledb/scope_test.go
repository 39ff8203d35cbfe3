package sampledb

// scopeOf is a reconcile that knows this, and can do nothing.
func scopeOf(c core) *scope { return scopeOn(actOf(c)) }

// scopeOn is a reconcile that knows and acts with this.
func scopeOn(a *act) *scope { return newScope(a.world, a.effects) }

package sampledb

// scopeOf is a reconcile that knows this, and can do nothing.
func scopeOf(c core) *scope { return newScope(newWorld(&c), &effects{}) }

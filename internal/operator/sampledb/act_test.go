package sampledb

// actOf knows this, and can do nothing.
func actOf(c core) *act { return &act{newWorld(&c), &effects{}} }

package world

// actOf knows this, and can do nothing.
func actOf(c Core) *Act { return &Act{New(&c), &Effects{}} }

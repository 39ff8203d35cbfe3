package ha

import (
	"fmt"
	"time"
)

// Stalls says that the volume stalls: nothing gets on disk.
func (l Local) Stalls() bool { return l.Unwritten > StallLimit }

// Stalling is that the volume stalls, for people; "" while it does not.
func (l Local) Stalling() string {
	if !l.Stalls() {
		return ""
	}
	return noWriteFor(StallLimit)
}

// slow is that the volume stalls or is about to, for people; "" while it takes writes.
func (l Local) slow() string {
	if l.Stalls() || l.Unwritten <= SlowLimit {
		return l.Stalling()
	}
	return noWriteFor(SlowLimit)
}

func noWriteFor(limit time.Duration) string {
	return fmt.Sprintf("the volume has not taken a write for %s", limit)
}

// volumeSlow keeps an instance from being elected whose volume is about to stall, or does: it could not keep its own
// promise.
func volumeSlow(v View) *Check {
	slow := v.Local.Unwritten > SlowLimit
	return failing(slow, "VolumeStalls", "the volume of %s has not taken a write for %s", v.Self, SlowLimit)
}

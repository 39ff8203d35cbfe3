package simulation

import (
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// disk is what an instance has on disk.
type disk struct {
	mem      ha.HardState
	data     ha.Data
	system   string
	wal      []entry
	oldest   int
	exists   bool
	cramped  bool          // there is no room for a copy beside the data
	lostAt   time.Duration // when data or volume was lost by a fault, or a rewind began
	maxTerms [2]uint64     // highest ballot and Won since the volume is there
	// stalledUntil is until when nothing gets on disk.
	stalledUntil time.Duration
}

// writeInterval is how long after a write to the volume the agent begins the next, writeLook how often it looks whether
// that has come back.
const (
	writeInterval = 500 * ms
	writeLook     = 250 * ms
)

// stall has the volume take no writes for a while.
func (n *node) stall(d time.Duration) {
	n.log("its volume stalls for %s", d)
	stalls := n.stalls()
	n.disk.stalledUntil = max(n.disk.stalledUntil, n.w.now+d)
	if n.up && !stalls {
		n.later(time.Duration(n.w.volumes.Int64N(int64(writeInterval))), n.seeVolume)
	}
}

// stalls says that the volume takes no writes.
func (n *node) stalls() bool { return n.disk.stalledUntil > n.w.now }

// whenWritten does something when the volume takes writes.
func (n *node) whenWritten(do func()) {
	if n.stalls() {
		n.later(n.disk.stalledUntil-n.w.now, func() { n.whenWritten(do) })
		return
	}
	do()
}

// seeVolume begins a write to the volume, and says again and again for how long it has not come back.
func (n *node) seeVolume() {
	if began := n.w.now; n.stalls() {
		n.awaitWrite(began)
	}
}

// awaitWrite looks whether a write has come back, unless the agent hangs, and so does not look.
func (n *node) awaitWrite(began time.Duration) {
	again := func() { n.awaitWrite(began) }
	switch {
	case n.busy():
		n.later(n.pause.busy-n.w.now, again)
	case n.stalls():
		n.step(machine.VolumeSeen{Unwritten: n.w.now - began})
		n.later(min(writeLook, n.disk.stalledUntil-n.w.now), again)
	default:
		n.step(machine.VolumeSeen{})
	}
}

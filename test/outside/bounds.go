package outside

import (
	"fmt"
	"time"
)

// Bound is for how long an event may keep everybody from writing. The tests of all rings share one machine, which may
// be busy, so that they can't hold it to what is promised on an idle one: they hold it to several times that. What
// takes longer is no slow machine any more, and fails.
type Bound struct {
	// Event is a part of a sentence: "when …".
	Event string
	// Promised is what docs/drills.md and the page of the event have of an idle machine, Most what is borne.
	Promised, Most time.Duration
}

// The bounds of all tests, by the kind of event.
var (
	// Undisturbed is for what no client is to notice: no server restarts, and nobody is elected. A commit may wait for
	// a slow disk, and a busy machine may elect somebody without need.
	Undisturbed = Bound{"when nothing is to be noticed", 500 * time.Millisecond, 15 * time.Second}
	// HandsOver is for a primary that stops in order: a switchover, a restart, a Pod that is deleted. It waits two
	// seconds for poolers (protocol.HoldPatience), and for a checkpoint before.
	HandsOver = Bound{"when a primary hands over", 3 * time.Second, 20 * time.Second}
	// Lost is for a primary that is gone: killed, frozen, cut off, with a disk that stalls. The others elect after two
	// seconds of silence; several that stand for election at once rest in between (docs/busy.md).
	Lost = Bound{"when the primary is lost", 5 * time.Second, 30 * time.Second}
	// Hangs is for a server that does not answer, though its agent does: on a busy machine it is waited for 15 s
	// before it counts as lost (docs/ha.md).
	Hangs = Bound{"when the server of the primary hangs", 5 * time.Second, 45 * time.Second}
	// MajorityLost is for several instances that are gone at once, or one after the other: writes wait for two of them
	// to be back, with crash recovery, and with Pods that are made anew.
	MajorityLost = Bound{"when a majority is lost and comes back", 15 * time.Second, time.Minute}
	// Restarts is for a lone instance that starts anew, maybe in a Pod that is made anew.
	Restarts = Bound{"when a lone instance starts anew", 10 * time.Second, time.Minute}
	// SidesChange is for the pause of a blue/green upgrade: what is not done after 3 s is put off (docs/bluegreen.md).
	// Then clients connect anew, by endpoints that have moved.
	SidesChange = Bound{"when sides change", 3 * time.Second, 20 * time.Second}
	// OperatorLost is for an operator that dies in that pause: the next one opens a side.
	OperatorLost = Bound{"when the operator dies while sides change", 20 * time.Second, time.Minute}
	// Upgrade is for a major version in place, of a small database (docs/upgrade.md).
	Upgrade = Bound{"when data is upgraded in place", 20 * time.Second, 3 * time.Minute}
	// UpgradeBroken is the same where something is killed meanwhile: a Pod whose node is lost is given up after some
	// minutes, and then the former version serves again.
	UpgradeBroken = Bound{"when an upgrade in place is broken off", 3 * time.Minute, 8 * time.Minute}
)

// During is the same bound where the event goes on for a while, and may keep clients from writing all the time.
func (b Bound) During(lasts time.Duration) Bound {
	b.Event += fmt.Sprintf(" for %s", lasts)
	b.Promised += lasts
	b.Most += lasts
	return b
}

// Judge is an error where nobody could write for longer than is borne.
func (b Bound) Judge(outage time.Duration) error {
	if outage <= b.Most {
		return nil
	}
	return fmt.Errorf("nobody could write for %.1f s: %s, that takes %s on an idle machine, "+
		"and %s at most on a busy one", outage.Seconds(), b.Event, b.Promised, b.Most)
}

// Gap finds the longest time between two acknowledged writes. It is to be guarded by who uses it.
type Gap struct {
	last    time.Time
	longest time.Duration
}

// Note notes an acknowledged write. Of several that come at once, a later one may be noted first.
func (g *Gap) Note(at time.Time) {
	if !g.last.IsZero() {
		g.longest = max(g.longest, at.Sub(g.last))
	}
	if at.After(g.last) {
		g.last = at
	}
}

// Longest is the longest gap so far.
func (g *Gap) Longest() time.Duration { return g.longest }

// Forget has only gaps count from now on that end later.
func (g *Gap) Forget() { g.longest = 0 }

package fleet

import (
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/operator/sampledb/world"
)

// The reasons of decisions.
const (
	reasonCurrent       = "Current"       // nothing to do
	reasonNotObserved   = "NotObserved"   // the StatefulSet controller has not seen the template yet
	reasonUnknown       = "Unknown"       // an instance could not be asked
	reasonOthersUnready = "OthersUnready" // another instance must be ready first
	reasonOthersJoining = "OthersJoining" // another instance must count for commits and votes first
	reasonBroken        = "Broken"        // does nothing now, so that replacing it costs nothing
	reasonEnding        = "Ending"        // its Pod is gone or ending already
	reasonMoving        = "Moving"        // another instance is about to become primary
	reasonRestarting    = "Restarting"    // its server is not back yet from what it was asked for
	reasonOutdated      = "Outdated"      // the Pod is not as the spec wants it
	reasonResizing      = "Resizing"      // the node has not given it its resources yet
	reasonPending       = "Pending"       // parameters wait for a restart of the server
	reasonAsked         = "Asked"         // a user asks for a restart of the server
)

// decide picks at most one instance to restart. The rules in their order: nothing
// restarts needlessly; what is broken and outdated is replaced at once; then one
// at a time, each only while all others are ready and count, so that one of them can
// take over, and while nobody is about to;
// Pods before servers, since a new Pod has a new server; standbys before the primary.
// A server that is asked to restart is not asked again before it is back, and a
// primary may come back as a standby: it is free to hand over instead.
func decide(f world.Fleet) world.Decision {
	due := slices.DeleteFunc(slices.Clone(f.Instances), func(i world.Instance) bool {
		return len(i.Outdated) == 0 && len(i.Pending) == 0 && !i.Asked && i.Resizing == ""
	})
	if len(due) == 0 {
		return world.Decision{Action: world.ActionNone, Reason: reasonCurrent}
	}
	if !f.Observed {
		return decided(world.ActionWait, "", reasonNotObserved, "the StatefulSet is being updated")
	}
	for _, i := range due {
		if len(i.Outdated) > 0 && i.Exists && !i.Running && !i.Ready {
			return decided(world.ActionReplace, i.Name, reasonBroken,
				"its Pod is not ready, and it is outdated: "+strings.Join(i.Outdated, ", "))
		}
	}
	if f.Moving != "" {
		return decided(world.ActionWait, "", reasonMoving, f.Moving)
	}
	return inTurn(f, next(due))
}

// decided is a decision about an instance, and why.
func decided(a world.Action, target, reason, message string) world.Decision {
	return world.Decision{Action: a, Target: target, Reason: reason, Message: message}
}

// inTurn restarts the next instance when its turn has come.
func inTurn(f world.Fleet, target world.Instance) world.Decision {
	for _, other := range f.Instances {
		switch {
		case other.Name == target.Name || other.Ready && !other.Joining:
		case other.Ready:
			return decided(world.ActionWait, target.Name, reasonOthersJoining,
				fmt.Sprintf("%s restarts when %s counts for commits and votes", target.Name, other.Name))
		case !other.Known && other.Running:
			return decided(world.ActionWait, target.Name, reasonUnknown, fmt.Sprintf("%s restarts when %s is ready",
				target.Name, other.Name))
		default:
			return decided(world.ActionWait, target.Name, reasonOthersUnready,
				fmt.Sprintf("%s restarts when %s is ready",
					target.Name, other.Name))
		}
	}
	switch {
	case !target.Exists:
		return decided(world.ActionWait, target.Name, reasonEnding, "its Pod is ending")
	case target.Resizing != "":
		return decided(world.ActionWait, target.Name, reasonResizing, target.Name+": "+target.Resizing)
	case target.Resizes:
		return decided(world.ActionResize, target.Name, reasonOutdated, strings.Join(target.Outdated, ", ")+" changed")
	case len(target.Outdated) > 0:
		return decided(world.ActionReplace, target.Name, reasonOutdated, strings.Join(target.Outdated, ", ")+" changed")
	case !target.Ready:
		return decided(world.ActionWait, target.Name, reasonRestarting, "its server is not back yet")
	case len(target.Pending) == 0:
		return decided(world.ActionRestart, target.Name, reasonAsked, "a restart was asked for")
	}
	return decided(world.ActionRestart, target.Name, reasonPending, "a restart is needed for "+
		strings.Join(target.Pending, ", "))
}

// next is the one of those due that restarts first.
func next(due []world.Instance) world.Instance {
	return slices.MinFunc(due, world.InOrder)
}

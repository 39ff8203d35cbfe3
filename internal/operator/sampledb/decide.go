package sampledb

import (
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
)

// action is what a decision about restarts asks for.
type action string

// The actions.
const (
	actionNone    action = "none"
	actionWait    action = "wait"
	actionReplace action = "replace" // delete the Pod; the StatefulSet makes it anew
	actionRestart action = "restart" // the server in it
	actionResize  action = "resize"  // give the Pod its resources while it runs
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

// decision says which instance restarts now, and why; or why none does.
type decision struct {
	action  action
	target  string
	reason  string
	message string
}

// fleet is what a decision about restarts is made of.
type fleet struct {
	// observed says that a Pod made now has the wanted template.
	observed bool
	// moving says why another instance is about to become primary, "" when none is.
	moving    string
	instances []instance
}

// instance is one wanted instance in a fleet.
type instance struct {
	name string
	// exists says that its Pod is there and is not ending.
	exists bool
	// known says that its agent answered; running, that the kubelet calls its Pod ready.
	known, running bool
	// ready says that it does what its role asks by its agent's own word.
	ready bool
	// joining says that its acknowledgement and its vote are known not to count yet: it
	// could not take over.
	joining bool
	primary bool
	// outdated are the facets in which its Pod is not as wanted, pending the
	// parameters that wait for a restart of its server.
	outdated, pending []string
	// resizes says that what is outdated of its Pod can be changed while it runs, resizing what a Pod waits for of
	// which that was asked, "" for nothing.
	resizes  bool
	resizing string
	// asked says that a user wants its server to restart.
	asked bool
}

// decide picks at most one instance to restart. The rules in their order: nothing
// restarts needlessly; what is broken and outdated is replaced at once; then one
// at a time, each only while all others are ready and count, so that one of them can
// take over, and while nobody is about to;
// Pods before servers, since a new Pod has a new server; standbys before the primary.
// A server that is asked to restart is not asked again before it is back, and a
// primary may come back as a standby: it is free to hand over instead.
func decide(f fleet) decision {
	due := slices.DeleteFunc(slices.Clone(f.instances), func(i instance) bool {
		return len(i.outdated) == 0 && len(i.pending) == 0 && !i.asked && i.resizing == ""
	})
	if len(due) == 0 {
		return decision{action: actionNone, reason: reasonCurrent}
	}
	if !f.observed {
		return decided(actionWait, "", reasonNotObserved, "the StatefulSet is being updated")
	}
	for _, i := range due {
		if len(i.outdated) > 0 && i.exists && !i.running && !i.ready {
			return decided(actionReplace, i.name, reasonBroken,
				"its Pod is not ready, and it is outdated: "+strings.Join(i.outdated, ", "))
		}
	}
	if f.moving != "" {
		return decided(actionWait, "", reasonMoving, f.moving)
	}
	return inTurn(f, next(due))
}

// decided is a decision about an instance, and why.
func decided(a action, target, reason, message string) decision {
	return decision{action: a, target: target, reason: reason, message: message}
}

// inTurn restarts the next instance when its turn has come.
func inTurn(f fleet, target instance) decision {
	for _, other := range f.instances {
		switch {
		case other.name == target.name || other.ready && !other.joining:
		case other.ready:
			return decided(actionWait, target.name, reasonOthersJoining,
				fmt.Sprintf("%s restarts when %s counts for commits and votes", target.name, other.name))
		case !other.known && other.running:
			return decided(actionWait, target.name, reasonUnknown, fmt.Sprintf("%s restarts when %s is ready",
				target.name, other.name))
		default:
			return decided(actionWait, target.name, reasonOthersUnready, fmt.Sprintf("%s restarts when %s is ready",
				target.name, other.name))
		}
	}
	switch {
	case !target.exists:
		return decided(actionWait, target.name, reasonEnding, "its Pod is ending")
	case target.resizing != "":
		return decided(actionWait, target.name, reasonResizing, target.name+": "+target.resizing)
	case target.resizes:
		return decided(actionResize, target.name, reasonOutdated, strings.Join(target.outdated, ", ")+" changed")
	case len(target.outdated) > 0:
		return decided(actionReplace, target.name, reasonOutdated, strings.Join(target.outdated, ", ")+" changed")
	case !target.ready:
		return decided(actionWait, target.name, reasonRestarting, "its server is not back yet")
	case len(target.pending) == 0:
		return decided(actionRestart, target.name, reasonAsked, "a restart was asked for")
	}
	return decided(actionRestart, target.name, reasonPending, "a restart is needed for "+strings.Join(target.pending, ", "))
}

// next is the one of those due that restarts first.
func next(due []instance) instance {
	return slices.MinFunc(due, inOrder)
}

// inOrder compares instances by when they restart.
func inOrder(a, b instance) int {
	primary := ""
	for _, i := range []instance{a, b} {
		if i.primary {
			primary = i.name
		}
	}
	return desired.RestartOrder(a.name, b.name, primary)
}

// fleet is what the scope knows of the wanted instances.
func (s *fleetFacts) fleet() fleet {
	f := fleet{observed: s.templateObserved(), moving: s.moving}
	leader, voters := s.leader(), s.voters()
	for ordinal := range s.instances() {
		i := instance{name: naming.Instance(s.db.Name, ordinal)}
		pod := s.seen.pods[ordinal]
		answer, known := s.seen.answers[i.name]
		if pod != nil {
			i.exists = pod.DeletionTimestamp == nil
			i.running = pods.Ready(pod)
			i.outdated = desired.Outdated(s.db, s.settings, pod)
			if s.lacksPullSecret(pod) {
				i.outdated = append(i.outdated, "imagePullSecrets")
			}
			_, i.resizes = desired.ResizesInPlace(s.db, pod, i.outdated)
			waits, refused := pods.Resizing(pod, s.now)
			if i.resizing = waits; refused { // another node may have room
				i.resizing, i.resizes, i.outdated = "", false, []string{desired.FacetResources}
			}
		}
		i.known = known
		i.ready = s.instanceReady(i.name)
		i.joining = len(voters) > 0 && !slices.Contains(voters, i.name)
		i.primary = i.name == leader
		if known && answer.ConfigRevision == s.config.Revision && i.exists {
			i.pending = answer.PendingRestart
		}
		i.asked = known && i.exists && s.restartDue(i.name)
		f.instances = append(f.instances, i)
	}
	return f
}

// templateObserved says that the StatefulSet controller makes Pods of the
// template that the spec asks for.
func (s *fleetFacts) templateObserved() bool {
	set := s.seen.set
	if set == nil || set.Status.ObservedGeneration != set.Generation {
		return false
	}
	return desired.Made(s.db, s.settings, set.Spec.Template.ObjectMeta)
}

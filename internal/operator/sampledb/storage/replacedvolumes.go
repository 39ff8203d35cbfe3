package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/operator/sampledb/world"
)

// The reasons of decisions about volumes that are made anew ("Smaller volumes, and another class" in docs/sampledb.md),
// in the order in which they are looked for.
const (
	replacingCurrent    = "Current"         // every volume is as wanted, or can become so
	replacingSetAside   = "DataSetAside"    // a volume has former data that is nowhere else
	replacingAlone      = "Alone"           // a lone instance has nobody to copy from
	replacingNoClass    = "NoClass"         // the class does not exist
	replacingNotKnown   = "FitNotKnown"     // whether the data fits is not known
	replacingDoesNotFit = "DoesNotFit"      // it does not
	replacingNoPrimary  = "NoPrimary"       // only a primary proves that the data is somewhere else
	replacingUnknown    = "VotersUnknown"   // the primary does not say who counts
	replacingBusy       = "Busy"            // something is under way that this would disturb
	replacingOthers     = "OthersUnready"   // another instance is not ready, or does not count
	replacingCopying    = "Copying"         // the same, and that one has a new volume
	replacingUnready    = "Unready"         // the instance itself is not ready, and counts
	replacingRefused    = "HandOverRefused" // the primary has refused to hand over a moment ago
	replacingDecided    = "Decided"         // the smaller size is to be the one in force
	replacingTemplate   = "Template"        // the StatefulSet would make other claims
	replacingHandOver   = "HandOver"        // it is the primary's turn
	replacingEnding     = "Ending"          // its Pod ends
	replacingReplaced   = "Replaced"        // its turn has come
)

// replacingView is what a decision about volumes that are made anew is made of.
type replacingView struct {
	instances []replacingInstance
	// primary takes writes, "" where none is known to; votersKnown is whether it says which instances count.
	primary     string
	votersKnown bool
	// missing says that the class does not exist, "" where it does or that is not known; fit whether the data fits.
	missing string
	fit     space.Fit
	// busy is what is under way, "" for nothing; refused why the primary has just refused to hand over.
	busy, refused string
	// undecided says that the size in force is still the former one, template that the StatefulSet makes claims as
	// wanted.
	undecided, template bool
}

// replacingInstance is a wanted instance, with its volume.
type replacingInstance struct {
	name string
	// due is what the volume can have only by being made anew, nothing where it is as wanted. going says that its claim
	// is being deleted, bound that there is a volume.
	due          []string
	going, bound bool
	// aside is former data that goes with the volume.
	aside volumes.Aside
	// exists says that its Pod is there and not ending, ready that it does what its role asks, counts that its vote
	// and its acknowledgement do, with the data that is on this volume.
	exists, ready, counts bool
}

// replacingStep is what to do about volumes that are to be made anew, and why. The message is for the user, and says
// what keeps the next step from being done; left are the instances whose volumes are to be made anew, in their order.
type replacingStep struct {
	reason, target, message string
	left                    []string
}

// decideReplacing decides the next step. The rules in their order: nothing goes that is nowhere else; what is not known
// moves nothing; first it is proved that the data fits; then one at a time, each while all others have the data and
// count; what does not count first, the primary last, which hands over.
func decideReplacing(v replacingView) replacingStep {
	due := v.due()
	if len(due) == 0 {
		return replacingStep{reason: replacingCurrent}
	}
	target := due[0]
	step := func(reason, format string, args ...any) replacingStep {
		return replacingStep{reason, target.name, fmt.Sprintf(format, args...), v.left(due)}
	}
	if name, aside := setAsideOf(due); aside.What != "" {
		return step("", "").keeps(name, aside)
	}
	switch {
	case len(v.instances) == 1:
		return step(replacingAlone,
			"%s is the only instance, and there is no other from which its data could be copied: "+
				"set spec.instances to 2, wait until the SampleDB is ready, and set it back to 1", target.name)
	case v.missing != "":
		return step(replacingNoClass, "%s", v.missing)
	case v.fit.Answer == space.NotKnown:
		return step(replacingNotKnown, "whether the data fits is not known: %s", v.fit.Message)
	case v.fit.Answer != space.Fits:
		return step(replacingDoesNotFit, "%s", v.fit.Message)
	case v.primary == "":
		return step(replacingNoPrimary, "no instance is known to take writes")
	case !v.votersKnown:
		return step(replacingUnknown, "%s does not say which instances count for commits and votes", v.primary)
	case v.busy != "":
		return step(replacingBusy, "waits for %s", v.busy)
	}
	if reason, other := v.unfit(target); other != "" {
		return step(reason, "%s is next when %s", target.name, other)
	}
	return v.inTurn(target, step)
}

// setAsideOf is the first of some instances whose volume has former data, as far as it is not going already.
func setAsideOf(due []replacingInstance) (name string, aside volumes.Aside) {
	for _, i := range due {
		if i.aside.What != "" && !i.going {
			return i.name, i.aside
		}
	}
	return "", volumes.Aside{}
}

// keeps is the step in the place of one with which the former data of an instance would go.
func (d replacingStep) keeps(name string, aside volumes.Aside) replacingStep {
	d.reason = replacingSetAside
	d.message = fmt.Sprintf("no volume is touched: that of %s has %s, and nobody else has it. %s; or copy it from "+
		"there first, or write the former values again", name, aside.What, aside.Until)
	return d
}

// inTurn is the step of the instance whose turn has come.
func (v replacingView) inTurn(target replacingInstance, step func(reason, format string,
	args ...any) replacingStep) replacingStep {
	switch {
	case target.counts && !target.ready && !target.going:
		return step(replacingUnready, "%s is next when it is ready: as long as it counts, it may have what others lack",
			target.name)
	case v.undecided:
		return step(replacingDecided, "the smaller size is the one in force from now on: %s", v.fit.Message)
	case !v.template:
		return step(replacingTemplate,
			"the StatefulSet is made anew, because it would make other claims; its Pods run on")
	case target.name == v.primary && v.refused != "":
		return step(replacingRefused, "%s has refused to hand over, and is asked again in a minute: %s",
			target.name, v.refused)
	case target.name == v.primary:
		return step(replacingHandOver, "%s hands over", target.name)
	case target.going && !target.exists:
		return step(replacingEnding, "%s gets a new volume when its Pod has ended", target.name)
	}
	return step(replacingReplaced, "%s is copied onto a new volume", target.name)
}

// due are the instances whose volumes are to be made anew, in their order: first that which has lost its volume
// already, then one that does not count, then the standbys from the highest number on, and the primary last.
func (v replacingView) due() []replacingInstance {
	due := slices.DeleteFunc(slices.Clone(v.instances), func(i replacingInstance) bool { return len(i.due) == 0 })
	rank := func(i replacingInstance) int {
		switch {
		case i.name == v.primary:
			return 3
		case i.going:
			return 0
		case !i.counts:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(due, func(a, b replacingInstance) int { return cmp.Or(rank(a)-rank(b), v.at(b)-v.at(a)) })
	return due
}

// at is the place of an instance, by ordinal.
func (v replacingView) at(i replacingInstance) int {
	return slices.IndexFunc(v.instances, func(o replacingInstance) bool { return o.name == i.name })
}

// unfit is what another instance than this one lacks, so that it could not do without it, and which reason that is; ""
// for nothing.
func (v replacingView) unfit(target replacingInstance) (reason, lacks string) {
	for _, i := range v.instances {
		switch {
		case i.name == target.name:
			continue
		case i.going || !i.bound:
			lacks = "the volume " + naming.ClaimOf(i.name) + " is there again"
		case !i.ready:
			lacks = i.name + " is ready"
		case !i.counts:
			lacks = i.name + " counts for commits and votes"
		default:
			continue
		}
		if len(i.due) == 0 {
			return replacingCopying, lacks
		}
		return replacingOthers, lacks
	}
	return "", ""
}

// left are the steps that are left, in words.
func (v replacingView) left(due []replacingInstance) (out []string) {
	for _, i := range due {
		words := i.name
		if i.name == v.primary && len(v.instances) > 1 {
			words += ", which hands over first"
		}
		out = append(out, words)
	}
	return out
}

// replacingReasons are the reasons of the condition StorageReady; all others wait.
var replacingReasons = map[string]string{
	replacingAlone: v1.ReasonNeedsAnotherInstance, replacingSetAside: v1.ReasonDataSetAside,
	replacingNoClass: v1.ReasonStorageClassNotFound, replacingDoesNotFit: v1.ReasonDataDoesNotFit,
	replacingCopying: v1.ReasonReplacingVolumes, replacingDecided: v1.ReasonReplacingVolumes,
	replacingTemplate: v1.ReasonReplacingVolumes, replacingHandOver: v1.ReasonReplacingVolumes,
	replacingEnding: v1.ReasonReplacingVolumes, replacingReplaced: v1.ReasonReplacingVolumes,
}

func (d replacingStep) condition() string {
	return cmp.Or(replacingReasons[d.reason], v1.ReasonReplacementWaits)
}

// verdict is the condition StorageReady while volumes are to be made anew.
func (d replacingStep) verdict() world.Verdict {
	return world.No(d.condition(), d.message+". Volumes to be made anew: "+strings.Join(d.left, "; "))
}

// Moves says that the next step follows by itself, soon.
func (d replacingStep) Moves() bool { return d.condition() == v1.ReasonReplacingVolumes }

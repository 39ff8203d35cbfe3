package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
)

// fleetTopic makes the Pods of instances, and restarts or replaces them one by one.
type fleetTopic struct {
	fleetBase
	initial verdict
}

// The reasons of decisions about the number of Pods.
const (
	scalingCurrent   = "Current"          // as many as are wanted, or more to come
	scalingNoData    = "NoData"           // there is nothing to lose yet
	scalingNoPrimary = "NoPrimary"        // only a primary can let others go
	scalingUnknown   = "VotersUnknown"    // the primary does not say who counts
	scalingNobody    = "NoSuccessor"      // the primary is to go, and nobody who stays can take over
	scalingHandOver  = "PrimaryHandsOver" // the primary is to go, and another is asked to take over
	scalingVoting    = "StillVoting"      // those to go still count for commits and votes
	scalingReleased  = "Released"         // those to go count no more
	scalingRestored  = "Restored"         // all stop, to start with other data
	scalingStopped   = "Stopped"          // all stop, and nobody starts before that is asked for
	scalingRestoring = "Restoring"        // a restore is under way, and may be on the volume of one that is to go
)

// size is what a decision about the number of Pods is made of.
type size struct {
	// have and want are numbers of instances: that there are or have to be, and of the spec.
	have, want int
	// restoring says that a restore is under way.
	restoring bool
	// data says that there is a database.
	data bool
	// primary takes writes; "" where none is known to. voters are those that it
	// has recorded; empty where that is not known.
	primary string
	voters  []string
	// stay are the wanted instances, ready those of them that do what their role asks, the most preferred first.
	stay, ready []string
}

// scaling is how many Pods there should be now, and why; or which instance must
// take over before fewer can be.
type scaling struct {
	replicas int
	reason   string
	message  string
	// successor is the instance that the primary should hand over to.
	successor string
}

// scale decides how many Pods the StatefulSet should have. More come at once. An
// instance goes when it is neither primary nor counts any more: what counts and
// is gone would be missed at each commit and each vote. What is not known lets
// nothing go.
func scale(z size) scaling {
	keep := func(reason, format string, args ...any) scaling {
		return scaling{replicas: z.have, reason: reason, message: fmt.Sprintf(format, args...)}
	}
	switch {
	case z.have <= z.want:
		return scaling{replicas: z.want, reason: scalingCurrent}
	case z.restoring:
		return keep(scalingRestoring,
			"a restore has not ended, and its data may be on an instance that is to be removed")
	case !z.data:
		return scaling{replicas: z.want, reason: scalingNoData}
	case z.primary == "":
		return keep(scalingNoPrimary, "no instance is known to take writes, and only the primary can release others")
	case len(z.voters) == 0:
		return keep(scalingUnknown, "%s does not say which instances count for commits and votes", z.primary)
	case !stays(z.primary, z.want):
		return handOver(z, keep)
	}
	if voting := slices.DeleteFunc(slices.Clone(z.voters),
		func(v string) bool { return stays(v, z.want) }); len(voting) > 0 {
		return keep(scalingVoting, "%s still counted for commits and votes%s", strings.Join(voting, ", "), z.absent())
	}
	return scaling{replicas: z.want, reason: scalingReleased}
}

// handOver finds who takes over from a primary that is to go: the first of those
// that stay, are ready and count.
func handOver(z size, keep func(reason, format string, args ...any) scaling) scaling {
	for _, name := range z.ready {
		if stays(name, z.want) && slices.Contains(z.voters, name) {
			d := keep(scalingHandOver, "the primary %s hands over to %s first", z.primary, name)
			d.successor = name
			return d
		}
	}
	return keep(scalingNobody, "%s is the primary, and no instance that stays can take over yet", z.primary)
}

// absent names the instances that stay and are not ready: the leader keeps one that is to go while it would have no
// majority without it. "" where there are none.
func (z size) absent() string {
	var names []string
	for _, name := range z.stay {
		if !slices.Contains(z.ready, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names, ", ") + " has to be ready first: else the leader would have no majority"
}

// stays says that an instance is among the first want.
func stays(name string, want int) bool {
	ordinal, known := naming.Ordinal(name)
	return known && ordinal < want
}

// size is what the scope knows of it.
func (s *fleetTopic) size() size {
	z := size{
		have: s.needed(), want: desired.Instances(s.db), restoring: s.restoreBegun() || s.upgradingInstance() != "",
		data: s.config.SystemIdentifier != "", primary: s.primary(), voters: s.voters(),
	}
	for i := range z.want {
		name := naming.Instance(s.db.Name, i)
		z.stay = append(z.stay, name)
		if s.instanceReady(name) {
			z.ready = append(z.ready, name)
		}
	}
	if order := s.preferredOrder(z.want); order != nil {
		slices.SortStableFunc(z.ready, func(a, b string) int {
			return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
		})
	}
	return z
}

// created is how many instances the StatefulSet has been asked for. Where it is
// gone, its Pods may still be there, and those without a Pod that count are missed.
func (s *fleetFacts) created() int {
	if s.seen.set != nil && s.seen.set.Spec.Replicas != nil {
		return int(*s.seen.set.Spec.Replicas)
	}
	count := 0
	for ordinal := range s.seen.pods {
		count = max(count, ordinal+1)
	}
	for _, i := range s.db.Status.InstanceStatuses {
		if ordinal, known := naming.Ordinal(i.Name); known && i.Voter {
			count = max(count, ordinal+1)
		}
	}
	return count
}

// needed is how many instances there are, or have to be: as many start as were stopped. When all have stopped for a
// restore in place or an upgrade, the one with the new data is among those that start again.
func (s *fleetFacts) needed() int {
	count := s.created()
	if stop := s.db.Status.Stop; stop != nil { // they have the votes
		count = max(count, int(stop.Instances))
	}
	for _, name := range []string{s.restoringInstance(), s.upgradingInstance()} {
		if ordinal, known := naming.Ordinal(name); known {
			count = max(count, ordinal+1)
		}
	}
	return count
}

// applyInstances writes the StatefulSet, with as many Pods as may be.
func (s *fleetTopic) applyInstances(ctx context.Context) error {
	s.scaling = scale(s.size())
	if s.stopped != nil {
		s.scaling = scaling{replicas: 0, reason: scalingRestored}
	}
	if s.stop.Down() {
		if !s.db.Status.Stop.Down() {
			return s.stopped // how many there were is on record first
		}
		s.scaling.reason = scalingStopped
	}
	if s.scaling.successor != "" && s.moving == "" {
		s.moveAway(ctx)
	}
	if s.seen.set != nil && !desired.MadeWithWAL(s.db, s.seen.set) {
		return s.settleTemplate(ctx)
	}
	set, err := desired.StatefulSet(s.db, s.Settings, s.config, s.scaling.replicas, s.seen.set)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	if s.seen.set == nil {
		volumes.NoteStorage(&set.Spec.VolumeClaimTemplates[0], s.storageNote())
	}
	if err := s.apply(ctx, s.db, set); err != nil {
		return err
	}
	if have := s.created(); s.seen.set != nil && have != s.scaling.replicas {
		s.addEvent(eventScaling, fmt.Sprintf("from %d to %d instances", have, s.scaling.replicas))
	}
	if s.stopped != nil {
		return s.stopped
	}
	return nil
}

// settleTemplate is for a StatefulSet of a former SampleDB, which makes claims for WAL volumes where none are wanted,
// or the other way round. Its template can't be changed, nor can its Pods.
func (s *fleetTopic) settleTemplate(ctx context.Context) error {
	if len(s.seen.pods) == 0 {
		return s.removeTemplate(ctx)
	}
	return &problem{v1.ReasonInvalidSpec, fmt.Sprintf("StatefulSet %s is of a former SampleDB, which had another "+
		"storage.wal: delete it (its volumes stay), or make the SampleDB with the storage.wal of that one",
		s.seen.set.Name), waitUser}
}

// moveAway asks a primary that is to go to hand over. It is asked again each time
// until it has; why it can't is what the status says.
func (s *fleetTopic) moveAway(ctx context.Context) {
	s.moving = s.scaling.message
	answer, err := s.all.askSwitchover(ctx, s.scaling.successor, "its instance is to be removed")
	if err == nil && answer.SwitchoverError != "" {
		s.scaling.message += ": " + answer.SwitchoverError
	}
}

package fleet

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
	"toban.dev/internal/operator/sampledb/world"
)

// fleetTopic makes the Pods of instances, and restarts or replaces them one by one.
type fleetTopic struct {
	base
	Initial world.Verdict
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

// scale decides how many Pods the StatefulSet should have. More come at once. An
// instance goes when it is neither primary nor counts any more: what counts and
// is gone would be missed at each commit and each vote. What is not known lets
// nothing go.
func scale(z size) world.Scaling {
	keep := func(reason, format string, args ...any) world.Scaling {
		return world.Scaling{Replicas: z.have, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case z.have <= z.want:
		return world.Scaling{Replicas: z.want, Reason: scalingCurrent}
	case z.restoring:
		return keep(scalingRestoring,
			"a restore has not ended, and its data may be on an instance that is to be removed")
	case !z.data:
		return world.Scaling{Replicas: z.want, Reason: scalingNoData}
	case z.primary == "":
		return keep(scalingNoPrimary, "no instance is known to take writes, and only the primary can release others")
	case len(z.voters) == 0:
		return keep(scalingUnknown, "%s does not say which instances count for commits and votes", z.primary)
	case !world.Stays(z.primary, z.want):
		return handOver(z, keep)
	}
	if voting := slices.DeleteFunc(slices.Clone(z.voters),
		func(v string) bool { return world.Stays(v, z.want) }); len(voting) > 0 {
		return keep(scalingVoting, "%s still counted for commits and votes%s", strings.Join(voting, ", "), z.absent())
	}
	return world.Scaling{Replicas: z.want, Reason: scalingReleased}
}

// handOver finds who takes over from a primary that is to go: the first of those
// that stay, are ready and count.
func handOver(z size, keep func(reason, format string, args ...any) world.Scaling) world.Scaling {
	for _, name := range z.ready {
		if world.Stays(name, z.want) && slices.Contains(z.voters, name) {
			d := keep(scalingHandOver, "the primary %s hands over to %s first", z.primary, name)
			d.Successor = name
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

// size is what the scope knows of it.
func (s *fleetTopic) size() size {
	z := size{
		have: s.Needed(), want: desired.Instances(s.DB), restoring: s.RestoreBegun() || s.UpgradingInstance() != "",
		data: s.Config.SystemIdentifier != "", primary: s.Primary(), voters: s.Voters(),
	}
	for i := range z.want {
		name := naming.Instance(s.DB.Name, i)
		z.stay = append(z.stay, name)
		if s.InstanceReady(name) {
			z.ready = append(z.ready, name)
		}
	}
	if order := s.PreferredOrder(z.want); order != nil {
		slices.SortStableFunc(z.ready, func(a, b string) int {
			return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
		})
	}
	return z
}

// ApplyInstances writes the StatefulSet, with as many Pods as may be.
func (s *fleetTopic) ApplyInstances(ctx context.Context) error {
	s.Scaling = scale(s.size())
	if s.Stopped != nil {
		s.Scaling = world.Scaling{Replicas: 0, Reason: scalingRestored}
	}
	if s.Stop.Down() {
		if !s.DB.Status.Stop.Down() {
			return s.Stopped // how many there were is on record first
		}
		s.Scaling.Reason = scalingStopped
	}
	if s.Scaling.Successor != "" && s.Moving == "" {
		s.moveAway(ctx)
	}
	if s.Seen.Set != nil && !desired.MadeWithWAL(s.DB, s.Seen.Set) {
		return s.settleTemplate(ctx)
	}
	set, err := desired.StatefulSet(s.DB, s.Settings, s.Config, s.Scaling.Replicas, s.Seen.Set)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if s.Seen.Set == nil {
		volumes.NoteStorage(&set.Spec.VolumeClaimTemplates[0], s.StorageNote())
	}
	if err := s.Apply(ctx, s.DB, set); err != nil {
		return err
	}
	if have := s.Created(); s.Seen.Set != nil && have != s.Scaling.Replicas {
		s.AddEvent(world.EventScaling, fmt.Sprintf("from %d to %d instances", have, s.Scaling.Replicas))
	}
	if s.Stopped != nil {
		return s.Stopped
	}
	return nil
}

// settleTemplate is for a StatefulSet of a former SampleDB, which makes claims for WAL volumes where none are wanted,
// or the other way round. Its template can't be changed, nor can its Pods.
func (s *fleetTopic) settleTemplate(ctx context.Context) error {
	if len(s.Seen.Pods) == 0 {
		return s.RemoveTemplate(ctx)
	}
	return &world.Problem{Reason: v1.ReasonInvalidSpec,
		Message: fmt.Sprintf("StatefulSet %s is of a former SampleDB, which had another "+
			"storage.wal: delete it (its volumes stay), or make the SampleDB with the storage.wal of that one",
			s.Seen.Set.Name), Wait: world.WaitUser}
}

// moveAway asks a primary that is to go to hand over. It is asked again each time
// until it has; why it can't is what the status says.
func (s *fleetTopic) moveAway(ctx context.Context) {
	s.Moving = s.Scaling.Message
	answer, err := s.All.askSwitchover(ctx, s.Scaling.Successor, "its instance is to be removed")
	if err == nil && answer.SwitchoverError != "" {
		s.Scaling.Message += ": " + answer.SwitchoverError
	}
}

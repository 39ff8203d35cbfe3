package sampledb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/room"
)

// takeSizeInForce makes storage.size that of the volumes from here on, where they have grown by themselves: the largest
// of the spec, the status, and, as long as they may grow, of the volumes themselves. The status alone could be lost,
// and the volumes alone too. Where the user has lowered the size, the former one stays in force until it is decided
// that the data fits.
func (s *scope) takeSizeInForce() {
	s.wrote = desired.Asked(s.db)
	size, err := desired.Size(s.db)
	if err != nil {
		return // the storage phase reports it
	}
	for _, claim := range s.liveClaims() {
		grown := s.wrote.Grow != nil && !s.wrote.Smaller(claim)
		if has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; grown && has.Cmp(size) > 0 {
			size = has
		}
	}
	if former := s.formerSize(); former.Cmp(size) > 0 {
		size = former
	}
	if storage := s.db.Status.Storage; storage != nil {
		s.grownAt = storage.GrownAt
	}
	if wrote, err := resource.ParseQuantity(s.db.Spec.Storage.Size); err == nil && size.Cmp(wrote) > 0 {
		s.setSize(size.String())
	}
}

func (s *scope) setSize(size string) {
	s.db = s.db.DeepCopy()
	s.db.Spec.Storage.Size = size
}

// decideGrowth decides whether the volumes grow by themselves, and makes that the size in force.
func (r *Reconciler) decideGrowth(ctx context.Context, s *scope, wanted class) error {
	limit, grows := desired.GrowthLimit(s.db.Spec.Storage)
	if !grows {
		return nil
	}
	fixed, err := r.fixedClass(ctx, s, wanted)
	if err != nil {
		return err
	}
	size, err := desired.Size(s.db)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	growth := room.Growth{
		Limit: limit.Value(), Size: size.Value(), Volumes: s.volumes(), Fixed: fixed, Now: s.now,
	}
	if s.grownAt != nil {
		growth.GrownAt = s.grownAt.Time
	}
	s.growth = room.Decide(growth)
	if s.growth.Answer == room.Grows {
		s.sizeBefore = s.db.Spec.Storage.Size
		s.setSize(resource.NewQuantity(s.growth.To, resource.BinarySI).String())
	}
	return nil
}

// fixedClass says why a volume can't grow, "" where each can.
func (r *Reconciler) fixedClass(ctx context.Context, s *scope, wanted class) (string, error) {
	for ordinal := range s.instances() {
		claim := s.seen.claims[ordinal]
		if claim == nil {
			continue
		}
		of, err := r.classOf(ctx, claim, wanted)
		if err != nil {
			return "", err
		}
		if of.fixed {
			return fmt.Sprintf("volume %s can't grow: StorageClass %s has no allowVolumeExpansion",
				claim.Name, of.name), nil
		}
	}
	return "", nil
}

// volumes are those of the wanted instances.
func (s *scope) volumes() []room.Volume {
	var out []room.Volume
	for ordinal := range s.instances() {
		v := room.Volume{Name: naming.Claim(s.db.Name, ordinal)}
		if claim := s.seen.claims[ordinal]; claim != nil {
			v.Asked, v.Has = claim.Spec.Resources.Requests.Storage().Value(), claim.Status.Capacity.Storage().Value()
		}
		out = append(out, s.withRoom(v, naming.Instance(s.db.Name, ordinal)))
	}
	return out
}

// withRoom adds to a volume what its agent says. What a FaultDrill has filled counts as free: that goes by itself,
// and a volume that has grown stays so.
func (s *scope) withRoom(v room.Volume, instance string) room.Volume {
	seen := s.seen.answers[instance].Room
	if seen == nil || seen.Size <= 0 {
		return v
	}
	v.Known, v.Size, v.Used, v.Lately = true, seen.Size, seen.Used-seen.Drill, seen.Lately
	if seen.PerDay != nil {
		v.PerDay, v.RateKnown = *seen.PerDay, true
	}
	return v
}

// rooms are what the agents say of their volumes, by instance.
func (s *scope) rooms() map[string]protocol.Room {
	out := map[string]protocol.Room{}
	for name, answer := range s.seen.answers {
		if answer.Room != nil && answer.Room.Size > 0 {
			out[name] = *answer.Room
		}
	}
	return out
}

// giveUpGrowth goes back to the size before, where the first volume that was to grow by itself is refused to. Once one
// has grown, the others have to.
func (s *scope) giveUpGrowth(refused string) bool {
	if s.growth.Answer != room.Grows || s.grew {
		return false
	}
	s.growthRefused = refused
	s.setSize(s.sizeBefore)
	return true
}

// noteGrowth tells once that the volumes grow by themselves.
func (s *scope) noteGrowth() {
	if s.growth.Answer != room.Grows || s.grew {
		return
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.grownAt, s.grew = &at, true
	s.addEvent(eventGrowing, fmt.Sprintf("the volumes grow by themselves to %s, because %s gets short",
		s.db.Spec.Storage.Size, s.growth.Message))
}

// storageStatus is the size in force, where the volumes may grow by themselves, or have, or are to be made smaller.
func (s *scope) storageStatus() *v1.StorageStatus {
	old := s.db.Status.Storage
	size := s.db.Spec.Storage.Size
	switch {
	case s.anew.reason == anewDecided:
		size = s.wrote.Size
	case s.wrote.Grow == nil && old == nil && size == s.wrote.Size:
		return nil
	}
	return &v1.StorageStatus{Size: size, GrownAt: s.grownAt}
}

// leastUntilShort is how soon volumes that fill fast are looked at again.
const leastUntilShort = 2 * time.Second

// untilShort is how soon volumes that grow by themselves are to be looked at again.
func (s *scope) untilShort() time.Duration {
	switch {
	case s.db.Spec.Storage.Grow == nil:
		return pauseResting
	case s.growthRefused != "":
		return pauseStuckLong
	case s.growth.Answer == room.Pending:
		return pauseStuck
	}
	soonest := pauseStuckLong * 2
	for _, v := range s.volumes() {
		if in, never := v.ShortIn(); !never && s.growth.Answer == room.Enough {
			soonest = min(soonest, max(in/2, leastUntilShort))
		}
	}
	return soonest
}

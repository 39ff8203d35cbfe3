package sampledb

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/space"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/protocol"
)

// takeSizeInForce makes storage.size that of the volumes from here on, where they have grown by themselves: the largest
// of the spec, the status, and, as long as they may grow, of the volumes themselves. The status alone could be lost,
// and the volumes alone too. Where the user has lowered the size, the former one stays in force until it is decided
// that the data fits.
func (s *storageTopic) takeSizeInForce() {
	s.wrote = volumes.Asked(s.db)
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

// takeWALSizeInForce does the same for storage.wal.size, which is never lowered: the largest of the spec and of the WAL
// volumes.
func (s *storageTopic) takeWALSizeInForce() {
	if s.db.Spec.Storage.WAL == nil {
		return
	}
	size, err := desired.WALVolume.Size(s.db)
	for ordinal := range desired.Instances(s.db) {
		claim := s.seen.wals[ordinal]
		if err != nil || claim == nil || claim.DeletionTimestamp != nil {
			continue
		}
		if has := claim.Spec.Resources.Requests.Storage(); has.Cmp(size) > 0 {
			size = *has
			s.setSizeOf(desired.WALVolume, size.String())
		}
	}
}

func (s *storageTopic) setSize(size string) { s.setSizeOf(desired.DataVolume, size) }

func (s *storageTopic) setSizeOf(v desired.Volume, size string) {
	s.db = s.db.DeepCopy()
	if v == desired.WALVolume {
		s.db.Spec.Storage.WAL.Size = size
	} else {
		s.db.Spec.Storage.Size = size
	}
}

// sizeOf is the size in force of a volume, as the spec has it.
func (s *storageTopic) sizeOf(v desired.Volume) string {
	if v == desired.WALVolume {
		return s.db.Spec.Storage.WAL.Size
	}
	return s.db.Spec.Storage.Size
}

// claimsOf are the claims of the data volumes, or of the WAL volumes, by ordinal.
func (s *storageFacts) claimsOf(v desired.Volume) map[int]*corev1.PersistentVolumeClaim {
	if v == desired.WALVolume {
		return s.seen.wals
	}
	return s.seen.claims
}

// growth is whether volumes grow by themselves, from the size before. grew says that one was told to, refused why that
// was refused, "" where it was not.
type growth struct {
	space.Decision

	before  string
	grew    bool
	refused string
}

func (s *storageTopic) growthOf(v desired.Volume) *growth {
	if v == desired.WALVolume {
		return &s.walGrowth
	}
	return &s.growth
}

// decideGrowth decides whether the data volumes, or the WAL volumes, grow by themselves, and makes that the size in
// force.
func (s *storageTopic) decideGrowth(ctx context.Context, v desired.Volume, wanted class) error {
	limit, grows := desired.GrowthLimit(s.db.Spec.Storage)
	if !grows {
		return nil
	}
	fixed, err := s.fixedClass(ctx, v, wanted)
	if err != nil {
		return err
	}
	size, err := v.Size(s.db)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	asked := space.Growth{
		Limit: limit.Value(), Size: size.Value(), Volumes: s.volumesOf(v), Fixed: fixed, Now: s.now,
	}
	if s.grownAt != nil {
		asked.GrownAt = s.grownAt.Time
	}
	g := s.growthOf(v)
	if g.Decision = space.Decide(asked); g.Answer == space.Grows {
		g.before = s.sizeOf(v)
		s.setSizeOf(v, resource.NewQuantity(g.To, resource.BinarySI).String())
	}
	return nil
}

// fixedClass says why a volume can't grow, "" where each can.
func (s *storageTopic) fixedClass(ctx context.Context, v desired.Volume, wanted class) (string, error) {
	for ordinal := range s.instances() {
		claim := s.claimsOf(v)[ordinal]
		if claim == nil {
			continue
		}
		of, err := s.classOf(ctx, claim, wanted)
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

// volumes are the data volumes of the wanted instances.
func (s *storageTopic) volumes() []space.Volume { return s.volumesOf(desired.DataVolume) }

// volumesOf are the data volumes, or the WAL volumes, of the wanted instances.
func (s *storageTopic) volumesOf(of desired.Volume) []space.Volume {
	var out []space.Volume
	for ordinal := range s.instances() {
		v := space.Volume{Name: of.ClaimName(s.db.Name, ordinal), WAL: of == desired.WALVolume}
		if claim := s.claimsOf(of)[ordinal]; claim != nil {
			v.Asked, v.Has = claim.Spec.Resources.Requests.Storage().Value(), claim.Status.Capacity.Storage().Value()
		}
		out = append(out, withRoom(v, s.roomOf(of, naming.Instance(s.db.Name, ordinal))))
	}
	return out
}

// roomOf is what the agent of an instance says of a volume, nil where that is not known.
func (s *storageFacts) roomOf(v desired.Volume, instance string) *protocol.Room {
	seen := s.seen.answers[instance].Room
	if v == desired.WALVolume {
		seen = s.seen.answers[instance].WALRoom
	}
	if seen == nil || seen.Size <= 0 {
		return nil
	}
	return seen
}

// withRoom adds to a volume what its agent says. What a FaultDrill has filled counts as free: that goes by itself,
// and a volume that has grown stays so.
func withRoom(v space.Volume, seen *protocol.Room) space.Volume {
	if seen == nil {
		return v
	}
	v.Known, v.Size, v.Used, v.Lately = true, seen.Size, seen.Used-seen.Drill, seen.Lately
	if seen.PerDay != nil {
		v.PerDay, v.RateKnown = *seen.PerDay, true
	}
	return v
}

// rooms are what the agents say of their data volumes, or their WAL volumes, by instance.
func (s *storageFacts) rooms(v desired.Volume) map[string]protocol.Room {
	out := map[string]protocol.Room{}
	for name := range s.seen.answers {
		if seen := s.roomOf(v, name); seen != nil {
			out[name] = *seen
		}
	}
	return out
}

// giveUpGrowth goes back to the size before, where the first volume that was to grow by itself is refused to. Once one
// has grown, the others have to.
func (s *storageTopic) giveUpGrowth(v desired.Volume, refused string) bool {
	g := s.growthOf(v)
	if g.Answer != space.Grows || g.grew {
		return false
	}
	g.refused = refused
	s.setSizeOf(v, g.before)
	return true
}

// noteGrowth tells once that the volumes grow by themselves.
func (s *storageTopic) noteGrowth(v desired.Volume) {
	g := s.growthOf(v)
	if g.Answer != space.Grows || g.grew {
		return
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.grownAt, g.grew = &at, true
	which := "the volumes"
	if v == desired.WALVolume {
		which = "the WAL volumes"
	}
	s.addEvent(eventGrowing, fmt.Sprintf("%s grow by themselves to %s, because %s gets short", which, s.sizeOf(v),
		g.Message))
}

// storageStatus is the size in force, where the volumes may grow by themselves, or have, or are to be made smaller.
func (s *storageTopic) storageStatus() *v1.StorageStatus {
	old := s.db.Status.Storage
	size := s.db.Spec.Storage.Size
	switch {
	case s.all.replacing.reason == replacingDecided:
		size = s.wrote.Size
	case s.wrote.Grow == nil && old == nil && size == s.wrote.Size:
		return nil
	}
	return &v1.StorageStatus{Size: size, GrownAt: s.grownAt}
}

// leastUntilShort is how soon volumes that fill fast are looked at again.
const leastUntilShort = 2 * time.Second

// untilShort is how soon volumes that grow by themselves are to be looked at again.
func (s *storageTopic) untilShort() time.Duration {
	if s.db.Spec.Storage.Grow == nil {
		return pauseResting
	}
	soonest := pauseStuckLong * 2
	for _, of := range desired.VolumesOf(s.db) {
		soonest = min(soonest, s.untilShortOf(of))
	}
	return soonest
}

func (s *storageTopic) untilShortOf(of desired.Volume) time.Duration {
	g := s.growthOf(of)
	switch {
	case g.refused != "":
		return pauseStuckLong
	case g.Answer == space.Pending:
		return pauseStuck
	}
	soonest := pauseStuckLong * 2
	for _, v := range s.volumesOf(of) {
		if in, never := v.ShortIn(); !never && g.Answer == space.Enough {
			soonest = min(soonest, max(in/2, leastUntilShort))
		}
	}
	return soonest
}

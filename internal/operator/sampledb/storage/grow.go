package storage

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
	"toban.dev/internal/operator/sampledb/world"
)

// TakeSizeInForce makes storage.size that of the volumes from here on, where they have grown by themselves: the largest
// of the spec, the status, and, as long as they may grow, of the volumes themselves. The status alone could be lost,
// and the volumes alone too. Where the user has lowered the size, the former one stays in force until it is decided
// that the data fits.
func (s *storageTopic) TakeSizeInForce() {
	s.Wrote = volumes.Asked(s.DB)
	size, err := desired.Size(s.DB)
	if err != nil {
		return // the storage phase reports it
	}
	for _, claim := range s.LiveClaims() {
		grown := s.Wrote.Grow != nil && !s.Wrote.Smaller(claim)
		if has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; grown && has.Cmp(size) > 0 {
			size = has
		}
	}
	if former := s.FormerSize(); former.Cmp(size) > 0 {
		size = former
	}
	if storage := s.DB.Status.Storage; storage != nil {
		s.GrownAt = storage.GrownAt
	}
	if wrote, err := resource.ParseQuantity(s.DB.Spec.Storage.Size); err == nil && size.Cmp(wrote) > 0 {
		s.setSize(size.String())
	}
}

// TakeWALSizeInForce does the same for storage.wal.size, which is never lowered: the largest of the spec and of the WAL
// volumes.
func (s *storageTopic) TakeWALSizeInForce() {
	if s.DB.Spec.Storage.WAL == nil {
		return
	}
	size, err := desired.WALVolume.Size(s.DB)
	for ordinal := range desired.Instances(s.DB) {
		claim := s.Seen.WALs[ordinal]
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
	s.DB = s.DB.DeepCopy()
	if v == desired.WALVolume {
		s.DB.Spec.Storage.WAL.Size = size
	} else {
		s.DB.Spec.Storage.Size = size
	}
}

// sizeOf is the size in force of a volume, as the spec has it.
func (s *storageTopic) sizeOf(v desired.Volume) string {
	if v == desired.WALVolume {
		return s.DB.Spec.Storage.WAL.Size
	}
	return s.DB.Spec.Storage.Size
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
	limit, grows := desired.GrowthLimit(s.DB.Spec.Storage)
	if !grows {
		return nil
	}
	fixed, err := s.fixedClass(ctx, v, wanted)
	if err != nil {
		return err
	}
	size, err := v.Size(s.DB)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	asked := space.Growth{
		Limit: limit.Value(), Size: size.Value(), Volumes: s.volumesOf(v), Fixed: fixed, Now: s.Now,
	}
	if s.GrownAt != nil {
		asked.GrownAt = s.GrownAt.Time
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
	for ordinal := range s.Instances() {
		claim := s.ClaimsOf(v)[ordinal]
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
	for ordinal := range s.Instances() {
		v := space.Volume{Name: of.ClaimName(s.DB.Name, ordinal), WAL: of == desired.WALVolume}
		if claim := s.ClaimsOf(of)[ordinal]; claim != nil {
			v.Asked, v.Has = claim.Spec.Resources.Requests.Storage().Value(), claim.Status.Capacity.Storage().Value()
		}
		out = append(out, world.WithRoom(v, s.RoomOf(of, naming.Instance(s.DB.Name, ordinal))))
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
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	s.GrownAt, g.grew = &at, true
	which := "the volumes"
	if v == desired.WALVolume {
		which = "the WAL volumes"
	}
	s.AddEvent(world.EventGrowing, fmt.Sprintf("%s grow by themselves to %s, because %s gets short", which, s.sizeOf(v),
		g.Message))
}

// StorageStatus is the size in force, where the volumes may grow by themselves, or have, or are to be made smaller.
func (s *storageTopic) StorageStatus() *v1.StorageStatus {
	old := s.DB.Status.Storage
	size := s.DB.Spec.Storage.Size
	switch {
	case s.All.Replacing.reason == replacingDecided:
		size = s.Wrote.Size
	case s.Wrote.Grow == nil && old == nil && size == s.Wrote.Size:
		return nil
	}
	return &v1.StorageStatus{Size: size, GrownAt: s.GrownAt}
}

// leastUntilShort is how soon volumes that fill fast are looked at again.
const leastUntilShort = 2 * time.Second

// UntilShort is how soon volumes that grow by themselves are to be looked at again.
func (s *storageTopic) UntilShort() time.Duration {
	if s.DB.Spec.Storage.Grow == nil {
		return world.PauseResting
	}
	soonest := world.PauseStuckLong * 2
	for _, of := range desired.VolumesOf(s.DB) {
		soonest = min(soonest, s.untilShortOf(of))
	}
	return soonest
}

func (s *storageTopic) untilShortOf(of desired.Volume) time.Duration {
	g := s.growthOf(of)
	switch {
	case g.refused != "":
		return world.PauseStuckLong
	case g.Answer == space.Pending:
		return world.PauseStuck
	}
	soonest := world.PauseStuckLong * 2
	for _, v := range s.volumesOf(of) {
		if in, never := v.ShortIn(); !never && g.Answer == space.Enough {
			soonest = min(soonest, max(in/2, leastUntilShort))
		}
	}
	return soonest
}

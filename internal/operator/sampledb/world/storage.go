package world

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/change/space"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/protocol"
)

// ClaimsOf are the claims of the data volumes, or of the WAL volumes, by ordinal.
func (s *storageFacts) ClaimsOf(v desired.Volume) map[int]*corev1.PersistentVolumeClaim {
	if v == desired.WALVolume {
		return s.Seen.WALs
	}
	return s.Seen.Claims
}

// RoomOf is what the agent of an instance says of a volume, nil where that is not known.
func (s *storageFacts) RoomOf(v desired.Volume, instance string) *protocol.Room {
	seen := s.Seen.Answers[instance].Room
	if v == desired.WALVolume {
		seen = s.Seen.Answers[instance].WALRoom
	}
	if seen == nil || seen.Size <= 0 {
		return nil
	}
	return seen
}

// WithRoom adds to a volume what its agent says. What a FaultDrill has filled counts as free: that goes by itself,
// and a volume that has grown stays so.
func WithRoom(v space.Volume, seen *protocol.Room) space.Volume {
	if seen == nil {
		return v
	}
	v.Known, v.Size, v.Used, v.Lately = true, seen.Size, seen.Used-seen.Drill, seen.Lately
	if seen.PerDay != nil {
		v.PerDay, v.RateKnown = *seen.PerDay, true
	}
	return v
}

// Rooms are what the agents say of their data volumes, or their WAL volumes, by instance.
func (s *storageFacts) Rooms(v desired.Volume) map[string]protocol.Room {
	out := map[string]protocol.Room{}
	for name := range s.Seen.Answers {
		if seen := s.RoomOf(v, name); seen != nil {
			out[name] = *seen
		}
	}
	return out
}

// LiveClaims are those of the wanted instances, by ordinal, that are not being deleted.
func (s *storageFacts) LiveClaims() (out []*corev1.PersistentVolumeClaim) {
	for ordinal := range desired.Instances(s.DB) {
		if claim := s.Seen.Claims[ordinal]; claim != nil && claim.DeletionTimestamp == nil {
			out = append(out, claim)
		}
	}
	return out
}

// KeepsFormerSize says that the user has lowered the size, and that it is not decided yet that the data fits: then the
// former size is in force. It is decided when the status says so, or a volume was made for the smaller size already.
func (s *storageFacts) KeepsFormerSize() bool {
	size, err := resource.ParseQuantity(s.Wrote.Size)
	if err != nil {
		return false
	}
	if decided := s.DB.Status.Storage; decided != nil {
		if to, err := resource.ParseQuantity(decided.Size); err == nil && to.Cmp(size) <= 0 {
			return false
		}
	}
	smaller := false
	for _, claim := range s.LiveClaims() {
		asks := s.Wrote.Smaller(claim)
		smaller = smaller || asks
		if !asks && s.Wrote.HasNoted(claim) {
			return false
		}
	}
	return smaller
}

// FormerSize is the size that every volume has at least, where the user has lowered the size and that is not decided
// yet; zero elsewhere.
func (s *storageFacts) FormerSize() (least resource.Quantity) {
	if !s.KeepsFormerSize() {
		return least
	}
	for n, claim := range s.LiveClaims() {
		if has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; n == 0 || has.Cmp(least) < 0 {
			least = has
		}
	}
	return least
}

// AsksAnother is what the volume of a claim can have only by being made anew, nothing for no claim.
func (s *storageFacts) AsksAnother(claim *corev1.PersistentVolumeClaim) []string {
	size, err := desired.Size(s.DB)
	if claim == nil || err != nil {
		return nil
	}
	due := s.Wrote.Anew(size, claim)
	if s.KeepsFormerSize() && s.Wrote.Smaller(claim) && !slices.Contains(due, volumes.AnewSize) {
		due = append(due, volumes.AnewSize)
	}
	return due
}

// StorageNote is what a claim notes that is made now. As long as the former size is in force, it is made for that one.
func (s *storageFacts) StorageNote() string {
	of := s.Wrote
	if s.KeepsFormerSize() {
		of.Size = s.DB.Spec.Storage.Size
	}
	return of.Note()
}

// RemoveTemplate deletes the StatefulSet, whose template for claims can't be changed. Its Pods stay, and belong to the
// one that is made in its place.
func (s *Act) RemoveTemplate(ctx context.Context) error {
	set := s.Seen.Set
	if set == nil || set.DeletionTimestamp != nil {
		return nil
	}
	err := s.Client.Delete(ctx, set, client.Preconditions{UID: &set.UID},
		client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete StatefulSet %s, to make it anew: %w", set.Name, err)
	}
	return nil
}

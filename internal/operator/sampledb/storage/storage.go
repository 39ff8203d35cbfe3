package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// storageTopic makes the volumes of instances, lets them grow, and removes those that are not wanted any more.
type storageTopic struct {
	base
	// growth is whether the data volumes grow by themselves, walGrowth whether the WAL volumes do.
	growth, walGrowth growth
}

// annotationDefaultClass marks the StorageClass for claims that name none.
const annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"

// ApplyStorage makes the claims of the wanted instances before their Pods, grows those
// that are too small, and removes those of instances that are gone where the
// spec says so (see remove). What it finds out becomes the condition StorageReady.
func (s *storageTopic) ApplyStorage(ctx context.Context) error {
	classes := map[desired.Volume]class{}
	for _, v := range desired.VolumesOf(s.DB) {
		class, err := s.storageClass(ctx, v.Class(s.DB))
		if err != nil {
			return err
		}
		classes[v] = class
		if err := s.decideGrowth(ctx, v, class); err != nil {
			return err
		}
	}
	for _, v := range desired.VolumesOf(s.DB) {
		if err := s.makeClaims(ctx, v, classes[v]); err != nil {
			return err
		}
	}
	s.Storage = s.bound()
	if classes[desired.DataVolume].unread && s.Storage.Reason == v1.ReasonProvisioning {
		s.Storage.Message += "; whether its StorageClass exists is not known: the operator may not read StorageClasses"
	}
	var kept []string
	for _, v := range []desired.Volume{desired.DataVolume, desired.WALVolume} {
		more, err := s.keepClaims(ctx, v, classes[v])
		if err != nil {
			return err
		}
		kept = append(kept, more...)
	}
	s.Storage.Message += strings.Join(kept, "")
	return nil
}

// makeClaims makes the claims of the wanted instances that are not there.
func (s *storageTopic) makeClaims(ctx context.Context, v desired.Volume, class class) error {
	for ordinal := range s.Instances() {
		if s.ClaimsOf(v)[ordinal] != nil {
			continue
		}
		if class.missing != "" {
			s.Storage = world.No(v1.ReasonStorageClassNotFound, class.missing)
			return &world.Problem{Reason: v1.ReasonStorageClassNotFound, Message: class.missing, Wait: world.WaitUser}
		}
		if err := s.ApplyClaim(ctx, v, ordinal, nil); err != nil {
			return err
		}
	}
	return nil
}

// keepClaims makes the claims that are there as wanted, or removes them, and says why such stay that were to go.
func (s *storageTopic) keepClaims(
	ctx context.Context, v desired.Volume, class class,
) (kept []string, err error) {
	claims := s.ClaimsOf(v)
	for _, ordinal := range slices.Sorted(maps.Keys(claims)) {
		claim := claims[ordinal]
		if claim.DeletionTimestamp != nil {
			continue
		}
		decided, err := s.decideRemoval(ctx, ordinal)
		if err != nil {
			return kept, err
		}
		if decided.remove {
			if err := s.DeleteClaim(ctx, claim); err != nil {
				return kept, err
			}
			continue
		}
		if decided.message != "" {
			kept = append(kept, fmt.Sprintf("; volume %s stays: %s", claim.Name, decided.message))
		}
		if v == desired.WALVolume && s.DB.Spec.Storage.WAL == nil {
			continue // of a former SampleDB, and nobody's now
		}
		if err := s.keepClaim(ctx, v, ordinal, class); err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// keepClaim makes an existing claim as wanted. One that may not grow stays as it
// is, and only that; everything else goes on.
func (s *storageTopic) keepClaim(ctx context.Context, v desired.Volume, ordinal int, class class) error {
	claim := s.ClaimsOf(v)[ordinal]
	grows, err := tooSmall(s.DB, v, claim)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if grows {
		if class, err = s.classOf(ctx, claim, class); err != nil {
			return err
		}
	}
	if ordinal >= s.Instances() || grows && class.fixed {
		if grows && ordinal < s.Instances() {
			s.Storage = world.No(v1.ReasonResizeRefused, fmt.Sprintf(
				"volume %s can't grow to %s: StorageClass %s has no allowVolumeExpansion",
				claim.Name, s.sizeOf(v), class.name))
		}
		return s.ApplyClaim(ctx, v, ordinal, claim)
	}
	err = s.ApplyClaim(ctx, v, ordinal, nil)
	var refusal *world.Problem
	if grows && errors.As(err, &refusal) && refusal.Reason == v1.ReasonInvalidSpec {
		if !s.giveUpGrowth(v, refusal.Message) {
			s.Storage = world.No(v1.ReasonResizeRefused, refusal.Message)
		}
		return nil
	}
	if err == nil && grows {
		s.noteGrowth(v)
		s.Storage = world.No(v1.ReasonResizing, fmt.Sprintf("volume %s grows to %s", claim.Name, s.sizeOf(v)))
		s.AddEvent(world.EventResizing, s.Storage.Message)
	}
	return err
}

// ApplyClaim writes a claim, with the size of sized where that is given.
func (s *storageTopic) ApplyClaim(
	ctx context.Context, v desired.Volume, ordinal int, sized *corev1.PersistentVolumeClaim,
) error {
	claim, err := v.Claim(s.DB, ordinal, s.ClaimsOf(v)[ordinal])
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if sized != nil {
		claim.Spec.Resources.Requests = sized.Spec.Resources.Requests
	}
	if v == desired.DataVolume && ordinal == 0 {
		if err := s.Others.MadeOf(ctx, claim); err != nil {
			return err
		}
	}
	s.markSetAside(claim, ordinal)
	if v == desired.DataVolume {
		s.All.noteStorage(claim, ordinal)
	}
	return s.Apply(ctx, s.DB, claim)
}

func tooSmall(db *v1.SampleDB, v desired.Volume, claim *corev1.PersistentVolumeClaim) (bool, error) {
	want, err := v.Claim(db, 0, nil)
	if err != nil {
		return false, err
	}
	have := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	return have.Cmp(want.Spec.Resources.Requests[corev1.ResourceStorage]) < 0, nil
}

// bound is the state of the volumes of the wanted instances.
func (s *storageTopic) bound() world.Verdict {
	for ordinal := range s.Instances() {
		for _, v := range desired.VolumesOf(s.DB) {
			claim := s.ClaimsOf(v)[ordinal]
			switch {
			case claim == nil || claim.Status.Phase != corev1.ClaimBound:
				return world.No(v1.ReasonProvisioning,
					fmt.Sprintf("volume %s is being created", v.ClaimName(s.DB.Name, ordinal)))
			case claim.DeletionTimestamp != nil:
				return world.No(v1.ReasonProvisioning,
					fmt.Sprintf("volume %s is being deleted; it will be created again", claim.Name))
			case growing(claim):
				return world.No(v1.ReasonResizing, fmt.Sprintf("volume %s is growing", claim.Name))
			case v == desired.DataVolume && len(s.AsksAnother(claim)) > 0:
				return world.No(v1.ReasonReplacementWaits, fmt.Sprintf("volume %s is to be made anew", claim.Name))
			}
		}
	}
	return world.Yes(v1.ReasonBound, "every volume exists and has its size")
}

// growing says that a volume has not reached the size its claim asks for.
func growing(claim *corev1.PersistentVolumeClaim) bool {
	capacity, known := claim.Status.Capacity[corev1.ResourceStorage]
	return known && capacity.Cmp(claim.Spec.Resources.Requests[corev1.ResourceStorage]) < 0
}

func (s *storageTopic) DeleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	err := s.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// class is the StorageClass of a SampleDB's claims.
type class struct {
	name string
	// missing says, for the user, that there is no such class.
	missing string
	// fixed says that its volumes can't grow.
	fixed bool
	// unread says that nothing is known of it.
	unread bool
}

// classOf is the class of a claim that is there. The cluster's default may have been another one when it was made.
func (s *storageTopic) classOf(ctx context.Context, claim *corev1.PersistentVolumeClaim, wanted class) (class, error) {
	if claim.Spec.StorageClassName == nil {
		return wanted, nil
	}
	return s.storageClass(ctx, claim.Spec.StorageClassName)
}

// storageClass finds the class that claims of this name get; the cluster's
// default for nil, and none at all for "".
func (s *storageTopic) storageClass(ctx context.Context, name *string) (class, error) {
	switch {
	case name != nil && *name == "":
		return class{fixed: true}, nil
	case s.NoClasses: // whether volumes can grow is found out by trying
		return class{unread: true}, nil
	case name == nil:
		return s.defaultClass(ctx)
	}
	var found storagev1.StorageClass
	err := s.Client.Get(ctx, types.NamespacedName{Name: *name}, &found)
	if apierrors.IsNotFound(err) {
		return class{name: *name, missing: fmt.Sprintf(
			"StorageClass %s does not exist: create it, or write another storage.storageClassName", *name)}, nil
	}
	if err != nil {
		return class{}, fmt.Errorf("read StorageClass %s: %w", *name, err)
	}
	return known(found), nil
}

func (s *storageTopic) defaultClass(ctx context.Context) (class, error) {
	var all storagev1.StorageClassList
	if err := s.Client.List(ctx, &all); err != nil {
		return class{}, fmt.Errorf("list StorageClasses: %w", err)
	}
	var chosen *storagev1.StorageClass
	for i := range all.Items {
		c := &all.Items[i]
		// Of several defaults Kubernetes takes the newest.
		if c.Annotations[annotationDefaultClass] == "true" &&
			(chosen == nil || chosen.CreationTimestamp.Before(&c.CreationTimestamp)) {
			chosen = c
		}
	}
	if chosen == nil {
		return class{missing: "the cluster has no default StorageClass: mark one as the default, or write " +
			"storage.storageClassName"}, nil
	}
	return known(*chosen), nil
}

func known(c storagev1.StorageClass) class {
	return class{name: c.Name, fixed: c.AllowVolumeExpansion == nil || !*c.AllowVolumeExpansion}
}

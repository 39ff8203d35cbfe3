package sampledb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// deletionTopic does what remains of a SampleDB that is being deleted.
type deletionTopic struct {
	*world.Act
	all *scope
	// waiting says what a deletion waits for, "" when for nothing.
	waiting string
	// kept are the volumes that stay when the SampleDB goes, though spec.DeletionPolicy is Snapshot.
	kept []string
}

// claimFinalizer puts our finalizer on a SampleDB before anything is made for it, and with it on record with which
// epochs a new one begins.
func (s *deletionTopic) claimFinalizer(ctx context.Context) error {
	begins := s.all.BeginsWith()
	if err := s.Writer().Hold(ctx, s.DB, begins); err != nil {
		return err
	}
	if len(begins) > 0 {
		return s.all.TakeBeginning()
	}
	return nil
}

// cleanUp removes what the SampleDB has, after a last backup where that is wanted, else in any state and without asking
// an agent: the StatefulSet and the Jobs, and when all Pods are gone, the claims as DeletionPolicy says. It returns
// true when all is gone that must be; the rest goes by owner references. Of one that leaves what belongs to it nothing
// goes.
func (s *deletionTopic) cleanUp(ctx context.Context) (bool, error) {
	switch s.DeletionPolicy.Reason {
	case world.DeletionUnknown:
		s.waiting = s.DeletionPolicy.Message
		return false, nil
	case world.DeletionOrphaned:
		return s.leaveAll(ctx)
	}
	if err := s.all.RemoveReaders(ctx); err != nil {
		return false, err
	}
	var err error
	if s.waiting, err = s.saveAll(ctx); err != nil || s.waiting != "" {
		return false, err
	}
	if set := s.Seen.Set; set != nil && set.DeletionTimestamp == nil && metav1.IsControlledBy(set, s.DB) {
		if err := s.DeleteObject(ctx, set); err != nil {
			return false, err
		}
		s.AddEvent(world.EventCleaningUp, "the instances are being stopped")
	}
	for i := range s.Seen.Jobs {
		if job := &s.Seen.Jobs[i]; job.DeletionTimestamp == nil && metav1.IsControlledBy(job, s.DB) {
			if err := s.DeleteObject(ctx, job); err != nil {
				return false, err
			}
		}
	}
	if s.waiting = remaining(s); s.waiting != "" {
		return false, nil
	}
	return s.releaseClaims(ctx)
}

// saveAll takes the last backup of what counts, where one is wanted, and names what that waits for, "" for nothing.
func (s *deletionTopic) saveAll(ctx context.Context) (waiting string, err error) {
	if waiting, err = firstSaid(ctx, s.all.annexes.End); err != nil || waiting != "" {
		return waiting, err
	}
	return s.snapshot(ctx)
}

// leaveAll lets go of all that belongs to the SampleDB, after Kubernetes has. A reconcile that had not seen the
// deletion yet may have written an object after Kubernetes had let go of it, with its owner: such an object would go
// with the SampleDB.
func (s *deletionTopic) leaveAll(ctx context.Context) (bool, error) {
	if slices.Contains(s.DB.Finalizers, metav1.FinalizerOrphanDependents) {
		s.waiting = "Kubernetes to let go of all that belongs to it"
		return false, nil
	}
	return true, s.Writer().Disown(ctx, s.DB, watched(), world.Belongs(s.DB)...)
}

// remaining names what has to be gone before the volumes may go, "" for nothing.
func remaining(s *deletionTopic) string {
	var names []string
	for _, ordinal := range slices.Sorted(maps.Keys(s.Seen.Pods)) {
		pod := s.Seen.Pods[ordinal]
		name := "Pod " + pod.Name
		if pod.Spec.NodeName != "" {
			name += " on node " + pod.Spec.NodeName
		}
		names = append(names, name)
	}
	for _, ordinal := range slices.Sorted(maps.Keys(s.Seen.Readers.Pods)) {
		names = append(names, "Pod "+s.Seen.Readers.Pods[ordinal].Name)
	}
	if len(names) == 0 && s.Seen.Set != nil && metav1.IsControlledBy(s.Seen.Set, s.DB) {
		names = append(names, "StatefulSet "+s.Seen.Set.Name)
	}
	return strings.Join(names, ", ")
}

// releaseClaims deletes the claims, or where they are to stay takes our ownership off them. It returns true when
// nothing is left to wait for.
func (s *deletionTopic) releaseClaims(ctx context.Context) (bool, error) {
	var waiting []string
	for _, v := range []desired.Volume{desired.DataVolume, desired.WALVolume} {
		waits, err := s.releaseClaimsOf(ctx, v)
		if err != nil {
			return false, err
		}
		waiting = append(waiting, waits...)
	}
	s.waiting = strings.Join(waiting, ", ")
	return s.waiting == "", nil
}

// releaseClaimsOf does that with those of the data volumes, or of the WAL volumes, and says which go.
func (s *deletionTopic) releaseClaimsOf(ctx context.Context, v desired.Volume) (waiting []string, err error) {
	for _, ordinal := range slices.Sorted(maps.Keys(s.ClaimsOf(v))) {
		claim := s.ClaimsOf(v)[ordinal]
		if !world.Ours(claim, s.DB) {
			continue
		}
		if s.unsaved(claim, ordinal) {
			s.kept = append(s.kept, claim.Name)
		} else if desired.DeletionPolicy(s.DB) != v1.DeletionRetain {
			waiting = append(waiting, "PersistentVolumeClaim "+claim.Name)
			if claim.DeletionTimestamp == nil {
				if err := s.all.DeleteClaim(ctx, claim); err != nil {
					return waiting, err
				}
			}
			continue
		}
		if claim.DeletionTimestamp == nil {
			if err := s.all.ApplyClaim(ctx, v, ordinal, claim); err != nil {
				return waiting, err
			}
		}
	}
	return waiting, nil
}

// unsaved says that the volume of an instance may have data that the last backup has not, and that nobody has said
// Delete about: no backup was taken, because no instance has ever said what it has; or it is of a former SampleDB.
func (s *deletionTopic) unsaved(claim *corev1.PersistentVolumeClaim, ordinal int) bool {
	switch {
	case desired.DeletionPolicy(s.DB) != v1.DeletionSnapshot:
		return false
	case s.Config.SystemIdentifier == "":
		return claim.Status.Phase == corev1.ClaimBound // before that there is no volume
	}
	return s.all.IsFormer(ordinal)
}

// release takes our finalizer off, after which the SampleDB is gone.
func (s *deletionTopic) release(ctx context.Context) error {
	if err := s.Writer().LetGo(ctx, s.DB); err != nil {
		return err
	}
	message := s.DeletionPolicy.Message
	if len(s.kept) > 0 {
		message = fmt.Sprintf("%s may have data of which there is no backup: delete what nobody needs, or have a "+
			"SampleDB of this name take it over", strings.Join(s.kept, ", "))
	}
	if words := allSaid(s.all.annexes.Stays); words != "" {
		message = strings.TrimPrefix(message+"; "+words, "; ")
	}
	if message != "" {
		s.Events.Eventf(s.DB, nil, corev1.EventTypeNormal, world.EventDataKept, world.EventActionReported, "%s",
			message)
	}
	return nil
}

// observeDeletionPolicy finds out whether a deletion means the data too. Where it does not, DeletionPolicy is Retain
// from here on, whatever the spec has. What is not known changes nothing: who closes the database to its clients for
// its last backup, keeps it closed.
func (s *deletionTopic) observeDeletionPolicy(ctx context.Context) {
	if s.DB.DeletionTimestamp == nil {
		return
	}
	d := deletionView{orphans: slices.Contains(s.DB.Finalizers, metav1.FinalizerOrphanDependents),
		ownerless: s.ownerless()}
	for _, name := range definitions(s.DB) {
		goes, err := s.Writer().KindGoes(ctx, name)
		switch {
		case goes:
			d.uninstalled = name
		case apierrors.IsForbidden(err):
			d.unreadable = name
		default:
			d.err = errors.Join(d.err, err)
		}
	}
	if d.unreadable != "" {
		follows, err := s.follows(ctx)
		d.follows, d.err = follows, errors.Join(d.err, err)
	}
	s.DeletionPolicy = decideDeletionPolicy(d)
	if s.DeletionPolicy.Reason == world.DeletionOrphaned || s.DeletionPolicy.Spares() {
		s.DB = s.DB.DeepCopy()
		s.DB.Spec.DeletionPolicy = v1.DeletionRetain
	}
}

// follows says that this is the second side of a SampleDB that lives, and that the other side serves. It is read past
// the cache: sides may just have changed.
func (s *deletionTopic) follows(ctx context.Context) (bool, error) {
	owner := metav1.GetControllerOf(s.DB)
	if owner == nil || owner.Kind != "SampleDB" || s.DB.Name != naming.Green(owner.Name) {
		return false, nil
	}
	blue := &v1.SampleDB{}
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.DB.Namespace, Name: owner.Name}, blue)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read which side serves: %w", err)
	}
	return blue.UID == owner.UID && blue.DeletionTimestamp == nil && !blue.Status.Upgrade.BlueClosed(), nil
}

// definitions are the CustomResourceDefinitions with which a SampleDB goes: its own, and that of the PostgreSQL
// that it is the server of.
func definitions(db *v1.SampleDB) []string {
	if o := metav1.GetControllerOf(db); o != nil && o.Kind == "PostgreSQL" {
		return []string{naming.DefinitionSampleDB, naming.DefinitionPostgreSQL}
	}
	return []string{naming.DefinitionSampleDB}
}

// ownerless says that something of the SampleDB's belongs to nobody any more: Kubernetes has left it, as it was told,
// and has already taken the note of that off the SampleDB. Of these the Lease is read past the cache, after the
// SampleDB, so that it can't have an owner still.
func (s *deletionTopic) ownerless() bool {
	left := func(object metav1.Object) bool {
		return metav1.GetControllerOf(object) == nil && object.GetLabels()[naming.LabelSampleDB] == s.DB.Name
	}
	return s.Seen.Lease != nil && left(s.Seen.Lease) ||
		s.Seen.Set != nil && left(s.Seen.Set) || s.Seen.Config != nil && left(s.Seen.Config)
}

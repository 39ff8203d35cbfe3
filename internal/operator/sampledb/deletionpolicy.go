package sampledb

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

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

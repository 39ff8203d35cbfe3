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
)

// The reasons of decisions about the data of a SampleDB that is being deleted.
const (
	// spec.deletionPolicy says what becomes of it.
	deletionByPolicy = "ByPolicy"
	// all that belongs to the SampleDB stays, and runs on.
	deletionOrphaned = "Orphaned"
	// its kind goes, and takes all objects with it; that is no wish about any of them.
	deletionUninstalled = "Uninstalled"
	// the operator may not see whether its kind goes, and so never knows what is meant.
	deletionUnreadable = "Unreadable"
	// why it is deleted is not known now.
	deletionUnknown = "Unknown"
)

// deletionView is what the decision about the data of a SampleDB that is being deleted is made of.
type deletionView struct {
	// orphans says that Kubernetes is to leave what belongs to the SampleDB; ownerless that it has done so.
	orphans, ownerless bool
	// uninstalled is a CustomResourceDefinition that is being deleted or gone, whose objects so go too; "" for none.
	// unreadable is one that the operator may not read. err is why that is not known otherwise.
	uninstalled, unreadable string
	err                     error
	// follows says that it is a second side which follows a SampleDB that lives: that one has all its data.
	follows bool
}

// deletionPolicy is what becomes of the data, and why.
type deletionPolicy struct{ reason, message string }

// decideDeletionPolicy decides whether a deletion means the data too.
func decideDeletionPolicy(d deletionView) deletionPolicy {
	switch {
	case d.orphans || d.ownerless:
		return deletionPolicy{deletionOrphaned,
			"the SampleDB is deleted and leaves all that belongs to it (--cascade=orphan): " +
				"its instances run on, without the operator"}
	case d.err != nil:
		return deletionPolicy{deletionUnknown, "it to be known why the SampleDB is deleted: " + d.err.Error()}
	case d.uninstalled != "":
		return deletionPolicy{deletionUninstalled, fmt.Sprintf(
			"the SampleDB is deleted with the CustomResourceDefinition %s: its volumes stay, and a SampleDB of the "+
				"same name takes them over", d.uninstalled)}
	case d.unreadable != "" && !d.follows:
		return deletionPolicy{deletionUnreadable, fmt.Sprintf(
			"the operator may not read the CustomResourceDefinition %s, so it can't know whether the SampleDB "+
				"is deleted with its kind: its volumes stay, whatever deletionPolicy says, and no last backup is taken",
			d.unreadable)}
	}
	return deletionPolicy{reason: deletionByPolicy}
}

// spares says that the data stays although nobody has said so.
func (f deletionPolicy) spares() bool {
	return f.reason == deletionUninstalled || f.reason == deletionUnreadable
}

// observeDeletionPolicy finds out whether a deletion means the data too. Where it does not, deletionPolicy is Retain
// from here on, whatever the spec has. What is not known changes nothing: who closes the database to its clients for
// its last backup, keeps it closed.
func (s *deletionTopic) observeDeletionPolicy(ctx context.Context) {
	if s.db.DeletionTimestamp == nil {
		return
	}
	d := deletionView{orphans: slices.Contains(s.db.Finalizers, metav1.FinalizerOrphanDependents),
		ownerless: s.ownerless()}
	for _, name := range definitions(s.db) {
		goes, err := s.writer().KindGoes(ctx, name)
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
	s.deletionPolicy = decideDeletionPolicy(d)
	if s.deletionPolicy.reason == deletionOrphaned || s.deletionPolicy.spares() {
		s.db = s.db.DeepCopy()
		s.db.Spec.DeletionPolicy = v1.DeletionRetain
	}
}

// follows says that this is the second side of a SampleDB that lives, and that the other side serves. It is read past
// the cache: sides may just have changed.
func (s *deletionTopic) follows(ctx context.Context) (bool, error) {
	owner := metav1.GetControllerOf(s.db)
	if owner == nil || owner.Kind != "SampleDB" || s.db.Name != naming.Green(owner.Name) {
		return false, nil
	}
	blue := &v1.SampleDB{}
	err := s.Reader.Get(ctx, types.NamespacedName{Namespace: s.db.Namespace, Name: owner.Name}, blue)
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
		return metav1.GetControllerOf(object) == nil && object.GetLabels()[naming.LabelSampleDB] == s.db.Name
	}
	return s.seen.lease != nil && left(s.seen.lease) ||
		s.seen.set != nil && left(s.seen.set) || s.seen.config != nil && left(s.seen.config)
}

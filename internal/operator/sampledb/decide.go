package sampledb

import (
	"fmt"

	"toban.dev/internal/operator/sampledb/world"
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

// decideDeletionPolicy decides whether a deletion means the data too.
func decideDeletionPolicy(d deletionView) world.DeletionPolicy {
	switch {
	case d.orphans || d.ownerless:
		return world.DeletionPolicy{Reason: world.DeletionOrphaned,
			Message: "the SampleDB is deleted and leaves all that belongs to it (--cascade=orphan): " +
				"its instances run on, without the operator"}
	case d.err != nil:
		return world.DeletionPolicy{Reason: world.DeletionUnknown,
			Message: "it to be known why the SampleDB is deleted: " + d.err.Error()}
	case d.uninstalled != "":
		return world.DeletionPolicy{Reason: world.DeletionUninstalled, Message: fmt.Sprintf(
			"the SampleDB is deleted with the CustomResourceDefinition %s: its volumes stay, and a SampleDB of the "+
				"same name takes them over", d.uninstalled)}
	case d.unreadable != "" && !d.follows:
		return world.DeletionPolicy{Reason: world.DeletionUnreadable, Message: fmt.Sprintf(
			"the operator may not read the CustomResourceDefinition %s, so it can't know whether the SampleDB "+
				"is deleted with its kind: its volumes stay, whatever deletionPolicy says, and no last backup is taken",
			d.unreadable)}
	}
	return world.DeletionPolicy{Reason: world.DeletionByPolicy}
}

package sampledb

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// storageAll are the topics about the volumes of a SampleDB.
type storageAll struct {
	*act
	*storageTopic
	*spaceTopic
	*volumesTopic
}

// newStorage are the topics of one reconcile, with the others.
func newStorage(a *act, others storageOthers) *storageAll {
	all := &storageAll{}
	b := storageBase{a, all, others}
	*all = storageAll{
		act:          a,
		storageTopic: &storageTopic{storageBase: b},
		spaceTopic:   &spaceTopic{storageBase: b},
		volumesTopic: &volumesTopic{storageBase: b},
	}
	return all
}

// storageBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type storageBase struct {
	*act
	all    *storageAll
	others storageOthers
}

// storageOthers is what these topics ask other topics for.
type storageOthers interface {
	// madeOf has a claim made of the snapshot that it is to be made of.
	madeOf(context.Context, *corev1.PersistentVolumeClaim) error
}

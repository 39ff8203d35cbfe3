// Package storage is about the volumes of a SampleDB: their sizes, how full they are, and instances that are copied
// onto other volumes.
package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the volumes of a SampleDB.
type Topics struct {
	*world.Act
	*storageTopic
	*spaceTopic
	*volumesTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{Act: a}
	b := base{Act: a, All: all, Others: others}
	all.storageTopic = &storageTopic{base: b}
	all.spaceTopic = &spaceTopic{base: b}
	all.volumesTopic = &volumesTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, Others]

// Others is what these topics ask other topics for.
type Others interface {
	// MadeOf has a claim made of the snapshot that it is to be made of.
	MadeOf(context.Context, *corev1.PersistentVolumeClaim) error
}

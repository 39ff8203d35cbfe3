// Package stop is about stops of a SampleDB: by its spec, by a timetable, and while nobody uses it.
package stop

import (
	"context"

	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about stops of a SampleDB.
type Topics struct {
	*world.Act
	*stopTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{Act: a}
	b := base{Act: a, All: all, Others: others}
	all.stopTopic = &stopTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, Others]

// Others is what these topics ask other topics for.
type Others interface {
	// StopArchive ends the server of an archive on a volume.
	StopArchive(context.Context) error
}

// Package restore is about where the data of a SampleDB comes from: restores, also in place, and what is done where the
// data is lost.
package restore

import (
	"context"

	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about where the data of a SampleDB comes from.
type Topics struct {
	*world.Act
	*restoreTopic
	*lossTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{Act: a}
	b := base{Act: a, All: all, Others: others}
	all.restoreTopic = &restoreTopic{base: b}
	all.lossTopic = &lossTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, Others]

// Others is what these topics ask other topics for.
type Others interface {
	// Known is what was learned before and must be kept.
	Known() (desired.Known, error)
	// ApplyConfig writes the ConfigMap.
	ApplyConfig(context.Context) error
}

package sampledb

import (
	"context"

	"toban.dev/internal/operator/desired"
)

// restoreAll are the topics about where the data of a SampleDB comes from.
type restoreAll struct {
	*act
	*restoreTopic
	*lossTopic
}

// newRestore are the topics of one reconcile, with the others.
func newRestore(a *act, others restoreOthers) *restoreAll {
	all := &restoreAll{}
	b := restoreBase{a, all, others}
	*all = restoreAll{
		act:          a,
		restoreTopic: &restoreTopic{restoreBase: b},
		lossTopic:    &lossTopic{restoreBase: b},
	}
	return all
}

// restoreBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type restoreBase struct {
	*act
	all    *restoreAll
	others restoreOthers
}

// restoreOthers is what these topics ask other topics for.
type restoreOthers interface {
	// known is what was learned before and must be kept.
	known() (desired.Known, error)
	// applyConfig writes the ConfigMap.
	applyConfig(context.Context) error
}

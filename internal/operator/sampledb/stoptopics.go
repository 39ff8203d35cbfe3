package sampledb

import (
	"context"
)

// stopAll are the topics about stops of a SampleDB.
type stopAll struct {
	*act
	*stopTopic
}

// newStop are the topics of one reconcile, with the others.
func newStop(a *act, others stopOthers) *stopAll {
	all := &stopAll{}
	b := stopBase{a, all, others}
	*all = stopAll{
		act:       a,
		stopTopic: &stopTopic{stopBase: b},
	}
	return all
}

// stopBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type stopBase struct {
	*act
	all    *stopAll
	others stopOthers
}

// stopOthers is what these topics ask other topics for.
type stopOthers interface {
	// stopArchive ends the server of an archive on a volume.
	stopArchive(context.Context) error
}

package world

import (
	"context"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
)

// Annexes are what a SampleDB does without: each adds here what the core does with it.
type Annexes struct {
	// Phases are their steps of a reconcile.
	Phases []Phase
	// Record notes in the status what has to be there before anything rests on it, and says whether there was
	// something: then it is read anew.
	Record []func(context.Context) (bool, error)
	// Conditions set those of their own, in their order.
	Conditions []func(set SetCondition)
	// Look is after how long the SampleDB is looked at again at the latest, 0 where it need not be.
	Look []func() time.Duration

	// End has nothing go on in a SampleDB that is being deleted, and names what the deletion waits for, "" for nothing.
	End []func(context.Context) (waiting string, err error)
	// Saved says that another last backup has all than the one of the SampleDB's own instances, which is not needed
	// then; Lacks what that one may lack, and Stays where else data is that was written last, "" for nothing.
	Saved        []func(context.Context) (bool, error)
	Lacks, Stays []func() string
}

// Phase is a step of a reconcile that is done before another one. Where it is apart nothing rests on it, and the
// reconcile goes on after its failure.
type Phase struct {
	Name, Before string
	Run          func(context.Context) error
	Apart        bool
}

// SetCondition sets a condition of the status, where it has something to say.
type SetCondition func(kind string, v Verdict)

// Rest is what an annex asks the core for.
type Rest interface {
	// Unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
	Unready() *Verdict
	// Known is what was learned before and must be kept.
	Known() (desired.Known, error)
	// ApplyConfig writes the ConfigMap.
	ApplyConfig(context.Context) error
	// KeepUp keeps the database running until its last backup is taken.
	KeepUp(context.Context) error
	// DueFinish notes that an act has left something to do in the databases; the sentence says which.
	DueFinish(sentence string, parts ...v1.FinishPart)
}

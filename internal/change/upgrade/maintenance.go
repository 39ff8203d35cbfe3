package upgrade

import (
	"time"

	"toban.dev/internal/change/steps"
)

// FinishRetry is how long after a failure what is left after a change of the image is tried again by itself.
const FinishRetry = time.Hour

// Finish is all that a decision is made of about what is left to do in the databases after a change of the image.
type Finish struct {
	Now time.Time
	// Permission is that of the spec, with a request for it.
	Permission
	// OnRequest says that nothing begins by itself.
	OnRequest bool
	// Due says that an act of the operator's, or a change of the image, has left something to do: that is done at once.
	Due bool
	// Stale says that indexes may be out of order, whatever has made them so.
	Stale bool
	// Ready says that the SampleDB is: instances that are being replaced would end the work again and again.
	Ready bool
	// Cramped says that the volume may have no room.
	Cramped bool
	// Works says that the Job is there and has not ended, Ended that it has.
	Works, Ended bool
	// FailedAt is when the last Job has ended that left something that trying again may mend, zero for none. Left says
	// that something can only be mended by a person.
	FailedAt time.Time
	Left     bool
}

// FinishStep is the whole of what is done about it now.
type FinishStep = steps.Phase

// The steps.
const (
	FinishNone  FinishStep = "none"
	FinishWait  FinishStep = "wait"  // for what the sentence says
	FinishBegin FinishStep = "begin" // the Job is made
	FinishWatch FinishStep = "watch" // it works
	FinishTake  FinishStep = "take"  // what it has left is taken over
)

// DecideFinish says what to do, in a sentence, and when that changes by itself (zero for never). Rows that are not
// found cost more than the reading and writing of a rebuild, so it begins at once after an act that has made it due,
// also where no window is given: whoever changes the image has chosen that time. What was found without such an act may
// have been so for long: that waits for a window or a request.
func DecideFinish(f Finish) (step FinishStep, says string, at time.Time) {
	switch {
	case f.Ended:
		return FinishTake, "", time.Time{}
	case f.Works:
		return FinishWatch, "The Job is at work", time.Time{}
	case !f.Asked && !f.Due && !f.Stale:
		return FinishNone, "", time.Time{}
	}
	d := f.Steps().Decide("")
	return d.Phase, d.Says, d.At
}

// Steps are what it waits for, one after the other, until its Job is made.
func (f Finish) Steps() steps.Table {
	byItself := !f.OnRequest && (f.Due || f.Stale && f.Window != nil)
	retry := f.FailedAt.Add(FinishRetry)
	t := steps.Table{Now: f.Now, Rows: []steps.Row{
		{Phase: FinishWait, Waits: []steps.Reason{
			{
				Is:   !f.Asked && f.Left,
				Says: "Mend what status.finish names, and ask again with the annotation toban.dev/reindex=now",
			},
			{
				Is: !f.Asked && !byItself, Says: "Rebuild them with the annotation toban.dev/reindex=now, or give " +
					"spec.update.window, in which that is done by itself",
			},
			{
				Is: !f.Asked && !f.FailedAt.IsZero() && f.Now.Before(retry), At: retry,
				Says: "It is tried again at " + stamp(retry),
			},
		}},
		{Phase: FinishWait, Window: "They are rebuilt in the next window, which opens at %s", Waits: []steps.Reason{
			{
				Is: f.Cramped && !f.Asked, Says: "The volume may have no room for a second copy of the largest " +
					"index: raise spec.storage.size, or ask with the annotation toban.dev/reindex=now",
			},
			{Is: !f.Ready, Says: "It begins when the SampleDB is Ready"},
		}},
		{Phase: FinishBegin, Begins: "The Job is at work"},
	}}
	if f.Asked && f.InWindow || !f.Asked && !f.Due {
		t.Window = f.Window
	}
	return t
}

package upgrade

import (
	"fmt"
	"time"

	"toban.dev/internal/change/window"
)

// The phases of a blue/green upgrade besides those of one in place, in their order (docs/sides.md). The database
// serves in all of them but Changing and ChangingBack.
const (
	PhasePublishing   Phase = "Publishing"
	PhaseCopying      Phase = "Copying"
	PhaseFollowing    Phase = "Following"
	PhaseComparing    Phase = "Comparing"
	PhaseReady        Phase = "Ready"
	PhaseChanging     Phase = "Changing"
	PhaseChanged      Phase = "Changed"
	PhaseChangingBack Phase = "ChangingBack"
	PhaseCancelling   Phase = "Cancelling"
	PhaseComingHome   Phase = "ComingHome"
)

// PausePatience is for how long no client is let in at a change of sides, before it is put off. PutOff is for how long
// it is, and Tries how often it is tried by itself.
const (
	PausePatience = 3 * time.Second
	PutOff        = time.Minute
	Tries         = 3
)

// Colour is which of the two sides one is.
type Colour string

// The two sides.
const (
	Blue  Colour = "Blue"
	Green Colour = "Green"
)

// Task is work that a phase asks for: that of a Job, by the name of its verb, or TaskInPlace.
type Task string

// The tasks.
const (
	TaskPublish Task = "publish"
	TaskFollow  Task = "follow"
	TaskCompare Task = "compare"
	TaskPrepare Task = "prepare"
	TaskChange  Task = "change"
	TaskSettle  Task = "settle"
	TaskLeave   Task = "leave"
	TaskReturn  Task = "return"
	// TaskInPlace is the upgrade of blue's own data, on the way home.
	TaskInPlace Task = "in place"
)

// SidesView is all that a decision about a blue/green upgrade is made of.
type SidesView struct {
	Now time.Time
	// From is the major version of blue, To that of green.
	From, To int
	// Phase is the present one, Since when it began. Tried is how often the change was put off.
	Phase Phase
	Since time.Time
	Tried int
	// Wanted says that the spec wants the new version still. Failure is why the last try has failed, Repeat that it is
	// to be tried again.
	Wanted  bool
	Failure string
	Repeat  bool
	// Ready says that the SampleDB is, but for the upgrade; Busy is what else is under way, "" for nothing.
	Ready bool
	Busy  string
	// Window is that of spec.update, nil for none; Asked says that somebody asks not to wait for it.
	Window *window.Window
	Asked  bool
	// The work of each phase. While green serves, Follow, Compare and Prepare are about the link to blue, and the one
	// to green that is to be made anew; before, about the link to green, and the one back.
	Check, Backup, Publish, Copy, Follow, Compare, Prepare Work
	// Settle is what follows a change to green: blue begins to follow.
	Settle Work
	// Broken is why the following side can't go on following, "" where it can.
	Broken string
	// Gone says that green is not there any more, although it is to serve.
	Gone bool
	// Serves is the side that is to serve, by the record. Closed says that the other one's instances let no client in,
	// and have none; with Changing, and before the record has changed, that of the serving one.
	Serves Colour
	Closed bool
	// Hand is what is done in the pause, Waits that its Pod is ready to begin. Open says that the side that is to serve
	// takes the writes of clients.
	Hand  Work
	Waits bool
	Open  bool
	// Back says that the way back is asked for, Accepted that the upgrade is accepted, Until when it is by itself.
	Back, Accepted bool
	Until          time.Time
	// The parts of coming home: Leave has blue stop following, InPlace upgrades its data, and Return has it follow
	// again. InPlace has started when no instance of blue may run as before.
	Leave, InPlace, Return Work
	// Removed is the removal of green, and of all that there is of it on blue.
	Removed Work
}

// SidesDecision is the phase that a blue/green upgrade is in now, and what is to be said about it.
type SidesDecision struct {
	Phase Phase
	Says  string
	// Serves is the side that is to serve. It differs from that of the view in one decision of each change of sides.
	Serves Colour
	// Failure is why it has failed, with PhaseFailed or before it, PutOff that a change of sides was.
	Failure string
	PutOff  bool
	// Task is what is to be done now, "" for nothing besides what the phase itself asks for.
	Task Task
	// At is when that changes by itself, zero for never.
	At time.Time
}

// DecideSides says in which phase a blue/green upgrade is. Until green serves, every failure leads to blue; from then
// on none does, but a change back.
func DecideSides(v SidesView) SidesDecision {
	d := v.decide()
	if d.Serves == "" {
		d.Serves = v.Serves
	}
	return d
}

func (v SidesView) decide() SidesDecision {
	switch {
	case v.Phase == PhaseUpgraded:
		return SidesDecision{Phase: PhaseUpgraded}
	case v.Phase == PhaseComingHome && v.Serves == Blue:
		return v.arrive()
	case v.Phase == PhaseCancelling && v.Serves == Blue:
		return v.cancel(v.Failure)
	case v.Phase == PhaseChanging && v.Serves == Blue && !v.Wanted:
		return v.cancel("")
	case v.changing():
		return v.change()
	case v.Serves == Green:
		return v.onGreen()
	case !v.Wanted:
		return v.cancel("")
	case v.Phase == PhaseFailed && !v.Repeat:
		return v.failed()
	}
	return v.prepare()
}

// changing says that no client is let in, or that what was decided then is being done.
func (v SidesView) changing() bool {
	return v.Phase == PhaseChangingBack && !v.Gone || v.Phase == PhaseChanging && v.Serves == Blue
}

// onGreen is while green is to serve. What has begun with blue's data goes on, whatever becomes of green: an instance
// of blue that started in the middle of that would undo it.
func (v SidesView) onGreen() SidesDecision {
	d := v.changed()
	if v.Gone {
		d = v.gone()
	}
	if v.InPlace.Started && !v.InPlace.Done && d.Phase == PhaseComingHome {
		d.Task = TaskInPlace
	}
	return d
}

// gone is about green that was deleted while it served. Blue has followed it, but may be in the middle of its own
// upgrade once that is accepted.
func (v SidesView) gone() SidesDecision {
	if v.Back && !v.home() {
		v.Phase, v.Open = PhaseChangingBack, false
		d := v.opened(Blue)
		d.Serves = Blue
		return d
	}
	says := "No side serves: " + v.Broken
	if !v.home() {
		says += ". The annotation toban.dev/upgrade-back has the former side serve, with all that it has followed. " +
			"Its sequences are where they were at the change: set them"
	}
	return SidesDecision{Phase: v.whileGreen(), Failure: v.Broken, Says: says}
}

// prepare is what is done while blue serves. All of it is looked at each time, so that what was done and is gone is
// done again.
func (v SidesView) prepare() SidesDecision {
	if v.Broken != "" {
		return v.cancel(v.Broken)
	}
	if !v.Ready || v.Busy != "" {
		return SidesDecision{Phase: PhaseWaiting, Says: "It goes on when the SampleDB is Ready" + because(v.Busy)}
	}
	for _, step := range []struct {
		phase Phase
		task  Task
		work  Work
		says  string
	}{
		{PhaseChecking, "", v.Check, "The databases are looked through"},
		{PhaseBackingUp, "", v.Backup, "A backup is taken, of which the second side is made"},
		{PhasePublishing, TaskPublish, v.Publish, "Publications and slots are made in each database"},
		{PhaseCopying, "", v.Copy, "The second side is made of the backup, and upgraded"},
		{PhaseFollowing, TaskFollow, v.Follow, "The second side follows, and has not caught up yet"},
		{PhaseComparing, TaskCompare, v.Compare, "All rows of both sides are compared"},
		{PhaseReady, TaskPrepare, v.Prepare, "The link back is made"},
	} {
		switch {
		case step.work.Failed != "":
			return v.cancel(step.work.Failed)
		case !step.work.Done:
			return SidesDecision{Phase: step.phase, Task: step.task, Says: step.says + because(step.work.Says)}
		}
	}
	return v.begin(PhaseChanging, PhaseReady)
}

// begin is about the moment at which sides change: in the window, and not soon again when it was put off.
func (v SidesView) begin(changing, meanwhile Phase) SidesDecision {
	wait := func(at time.Time, format string, args ...any) SidesDecision {
		d := SidesDecision{Phase: meanwhile, Says: fmt.Sprintf(format, args...), At: at}
		if v.Tried > 0 {
			d.Failure = v.Failure // it is said for as long as it is put off
		}
		return d
	}
	again := v.Since.Add(PutOff)
	switch {
	case v.Tried > 0 && v.Now.Before(again):
		return wait(again, "The change of sides was put off: %s. It is tried again at %s", v.Failure, stamp(again))
	case v.Tried >= Tries && !v.Asked:
		return wait(time.Time{}, "All is ready, and the change of sides was put off %d times: %s. It is tried again "+
			"with the annotation toban.dev/update=now", v.Tried, v.Failure)
	case !v.Asked && v.Window != nil && !v.Window.Open(v.Now) && !v.Back: // the way back is always asked for
		next := v.Window.Next(v.Now)
		return wait(next, "All is ready. Sides change in the next window, which opens at %s", stamp(next))
	case v.Hand.Failed != "" && !v.Waits:
		return SidesDecision{Phase: meanwhile, PutOff: true, Failure: v.Hand.Failed, At: v.Now.Add(PutOff),
			Says: "The change of sides was put off: " + v.Hand.Failed}
	case !v.Waits:
		d := wait(time.Time{}, "The Pod that hands over is being started%s", because(v.Hand.Says))
		d.Task = TaskChange
		return d
	}
	return SidesDecision{Phase: changing, Says: "No client is let in, until the other side serves",
		At: v.Now.Add(PausePatience)}
}

// change is the pause. Which side serves changes here, when the one that served is closed and the other one has all.
func (v SidesView) change() SidesDecision {
	back := v.Phase == PhaseChangingBack
	to, stays := Green, PhaseReady
	if back {
		to, stays = Blue, v.whileGreen()
	}
	putOff := func(why string) SidesDecision {
		return SidesDecision{Phase: stays, PutOff: true, Failure: why, Says: "The change of sides was put off: " + why,
			At: v.Now.Add(PutOff)}
	}
	switch {
	case v.Serves == to:
		return v.opened(to)
	case v.Broken != "":
		return putOff(v.Broken)
	case v.Hand.Failed != "":
		return putOff(v.Hand.Failed)
	case v.Closed && v.Hand.Done && !v.Compare.Done:
		return putOff("another primary was elected, and all rows are compared anew")
	case v.Closed && v.Hand.Done:
		v.Open = false // what is known of that is about the other side
		d := v.opened(to)
		d.Serves = to
		return d
	case v.Now.Sub(v.Since) >= PausePatience:
		return putOff(fmt.Sprintf("it was not done after %s%s", PausePatience, because(v.Hand.Says)))
	}
	return SidesDecision{Phase: v.Phase, Says: "No client is let in" + because(v.Hand.Says),
		At: v.Since.Add(PausePatience)}
}

// opened is about a side that is to serve from now on.
func (v SidesView) opened(to Colour) SidesDecision {
	if to == Green {
		return SidesDecision{Phase: PhaseChanged, Says: fmt.Sprintf("PostgreSQL %d is let to serve", v.To)}
	}
	if v.home() {
		return v.arrive()
	}
	if v.Open {
		return v.cancel(wayBackTaken)
	}
	return SidesDecision{Phase: PhaseChangingBack, Says: fmt.Sprintf("PostgreSQL %d is let to serve", v.From)}
}

// wayBackTaken is why an upgrade counts as failed that somebody has taken back.
const wayBackTaken = "the way back was asked for"

// home says that the upgrade is accepted, so that sides change back for good.
func (v SidesView) home() bool {
	return v.Accepted || v.Phase == PhaseComingHome || v.Phase == PhaseChanged && !v.Back && !v.Until.IsZero() &&
		!v.Now.Before(v.Until)
}

// whileGreen is the phase while green serves, and no change is under way.
func (v SidesView) whileGreen() Phase {
	if v.home() {
		return PhaseComingHome
	}
	return PhaseChanged
}

// changed is while green serves, and blue follows it.
func (v SidesView) changed() SidesDecision {
	if !v.Open || v.Phase != PhaseChanged && v.Phase != PhaseComingHome { // the work of a way back has another link
		return SidesDecision{Phase: v.whileGreen(), Says: fmt.Sprintf("PostgreSQL %d is let to serve", v.To)}
	}
	step, pending := v.pending()
	d := v.sayOnGreen(step, pending)
	if pending && (v.Broken == "" || step.work.Started) { // where a link is broken, nothing new begins
		d.Task = step.task
	}
	return d
}

// sidesStep is work that has to be done before the next, and what is said meanwhile.
type sidesStep struct {
	task Task
	work Work
	says string
}

// pending is the first step that is not done while green serves, false where all are. Coming home, the new version
// moves to the SampleDB's own instances: their data is upgraded too, and follows. Before any change to blue comes the
// same as before the one to green.
func (v SidesView) pending() (sidesStep, bool) {
	steps := []sidesStep{{TaskSettle, v.Settle, "The former side begins to follow"}}
	if v.home() {
		steps = append(steps, sidesStep{TaskLeave, v.Leave, "Blue stops following"},
			sidesStep{TaskInPlace, v.InPlace, "The data of blue is upgraded"},
			sidesStep{TaskReturn, v.Return, "Blue follows again"})
	}
	if v.home() || v.Back {
		steps = append(steps, sidesStep{TaskFollow, v.Follow, "Blue has not caught up yet"},
			sidesStep{TaskCompare, v.Compare, "All rows of both sides are compared"},
			sidesStep{TaskPrepare, v.Prepare, "The other link is made"})
	}
	for _, step := range steps {
		if step.work.Failed != "" || !step.work.Done {
			return step, true
		}
	}
	return sidesStep{}, false
}

// sayOnGreen is the phase while green serves, and what is to be said.
func (v SidesView) sayOnGreen(step sidesStep, pending bool) SidesDecision {
	stay := func(format string, args ...any) SidesDecision {
		return SidesDecision{Phase: v.whileGreen(), At: v.Until,
			Says: fmt.Sprintf("PostgreSQL %d serves", v.To) + fmt.Sprintf(format, args...)}
	}
	settles := pending && step.task == TaskSettle
	switch failed := step.work.Failed; {
	case v.Broken != "":
		return stay(". There is no way back, because the former side does not follow any more: %s", v.Broken)
	case settles && failed != "":
		return stay(". There is no way back, because the former side could not be made to follow: %s", failed)
	case settles:
		return stay(", and the former side begins to follow it%s", because(step.work.Says))
	case pending && failed != "":
		d := SidesDecision{Phase: v.whileGreen(), Failure: failed, Says: fmt.Sprintf("PostgreSQL %d serves on the "+
			"second side. The SampleDB's own instances can't take over yet: %s", v.To, failed)}
		if step.task == TaskInPlace {
			d.Says += ". When that is mended, try again with the annotation toban.dev/update=now"
		}
		return d
	case pending:
		return SidesDecision{Phase: v.whileGreen(), Says: step.says + because(step.work.Says)}
	case v.home() || v.Back:
		return v.begin(PhaseChangingBack, v.whileGreen())
	}
	return stay(", and %d follows it, so that there is a way back, until it is accepted", v.From)
}

// arrive is about blue that serves with the new version.
func (v SidesView) arrive() SidesDecision {
	switch {
	case !v.Open:
		return SidesDecision{Phase: PhaseComingHome, Says: fmt.Sprintf("PostgreSQL %d is let to serve", v.To)}
	case !v.Removed.Done:
		return SidesDecision{Phase: PhaseComingHome, Says: "The second side is removed" +
			because(v.Removed.Failed+v.Removed.Says)}
	}
	return SidesDecision{Phase: PhaseUpgraded, Says: fmt.Sprintf("PostgreSQL %d takes writes", v.To)}
}

// cancel removes green, and all that there is of it on blue. It has then failed, or was not wanted.
func (v SidesView) cancel(why string) SidesDecision {
	if !v.Removed.Done {
		return SidesDecision{Phase: PhaseCancelling, Failure: why,
			Says: "The second side is removed" + because(why) + because(v.Removed.Failed+v.Removed.Says)}
	}
	v.Failure = why
	return v.failed()
}

// failed says that blue serves, and nothing of green is left.
func (v SidesView) failed() SidesDecision {
	if v.Failure == "" {
		return SidesDecision{Phase: PhaseFailed, Says: fmt.Sprintf("PostgreSQL %d serves, and nothing is left of the "+
			"upgrade", v.From)}
	}
	if v.Failure == wayBackTaken {
		return SidesDecision{Phase: PhaseFailed, Failure: v.Failure, Says: fmt.Sprintf("PostgreSQL %d serves again, "+
			"with all that was written, because %s. Set spec.version back to %d, or begin anew with the annotation "+
			"toban.dev/update=now", v.From, v.Failure, v.From)}
	}
	return SidesDecision{Phase: PhaseFailed, Failure: v.Failure, Says: fmt.Sprintf("PostgreSQL %d serves as before, "+
		"because %s. When that is mended, try again with the annotation toban.dev/update=now, or set spec.version "+
		"back to %d", v.From, v.Failure, v.From)}
}

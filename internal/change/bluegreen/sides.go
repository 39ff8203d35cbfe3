package bluegreen

import (
	"fmt"
	"time"

	"toban.dev/internal/change/major"

	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/window"
)

// Phase is how far a blue/green upgrade is.
type Phase = steps.Phase

// Work is how far something is that it needs.
type Work = steps.Work

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

// NotCompared is why sides don't change while the servers that take part are not those that were compared. All rows are
// compared anew then: a comparison that the operator knows of says nothing about others.
const NotCompared = "NotCompared"

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
type Task = steps.Task

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
	SidesWorks
	// Broken is why the following side can't go on following, "" where it can.
	Broken string
	// Gone says that green is not there any more, although it is to serve.
	Gone bool
	// Serves is the side that is to serve, by the record. Closed says that the other one's instances let no client in,
	// and have none; with Changing, and before the record has changed, that of the serving one.
	Serves Colour
	Closed bool
	// Unready is why not all instances of green are ready, which lets clients in, "" where they are. One that does not
	// answer can't say that no client is there, so that green can't be closed.
	Unready string
	// Unshown is why green does not show clients a certificate that they know, "" where it does.
	Unshown string
	// Waits says that the Pod is ready to begin that hands over. Open says that the side that is to serve takes the
	// writes of clients.
	Waits bool
	Open  bool
	// Back says that the way back is asked for, Accepted that the upgrade is accepted, Until when it is by itself.
	Back, Accepted bool
	Until          time.Time
}

// SidesWorks is how far each work is that a blue/green upgrade needs.
type SidesWorks struct {
	// The work of each phase. While green serves, Follow, Compare and Prepare are about the link to blue, and the one
	// to green that is to be made anew; before, about the link to green, and the one back.
	Check, Backup, Publish, Copy, Follow, Compare, Prepare Work
	// Hand is what is done in the pause, Settle what follows a change to green: blue begins to follow.
	Hand, Settle Work
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
// on none does, but a change back. Which side serves changes in the pause, when the one that served is closed and the
// other one has all, or when green is gone and the way back is asked for.
func DecideSides(v SidesView) SidesDecision {
	d, serves := v.decide(), v.Serves
	handed := v.handedOver() && !d.PutOff
	switch {
	case handed && v.Phase == PhaseChanging && d.Phase == PhaseChanged:
		serves = Green
	case handed && v.Phase == PhaseChangingBack && !v.Gone, v.Gone && d.Phase == PhaseChangingBack:
		serves = Blue
	}
	return SidesDecision{d.Phase, d.Says, serves, d.Failure, d.PutOff, d.Task, d.At}
}

func (v SidesView) decide() steps.Decision {
	switch blue := v.Serves == Blue; {
	case v.Phase == major.PhaseUpgraded:
		return steps.Decision{Phase: major.PhaseUpgraded}
	case v.Phase == PhaseChangingBack && !v.Gone && blue:
		return v.back()
	case v.Phase == PhaseChangingBack && !v.Gone:
		return v.ToBlue().Decide(v.Phase)
	case !blue:
		return v.onGreen()
	case v.Phase == PhaseComingHome:
		return v.arrive()
	case v.Phase == PhaseCancelling:
		return v.cancel(v.Failure)
	case !v.Wanted:
		return v.cancel("")
	case v.Phase == major.PhaseFailed && !v.Repeat:
		return v.failed()
	}
	return v.ToGreen().Decide(v.Phase)
}

// ToGreen are the steps until green serves.
func (v SidesView) ToGreen() steps.Table {
	rows := []steps.Row{
		{Phase: major.PhaseWaiting, Fails: []steps.Reason{{Is: v.Broken != "", Says: v.Broken}}, Waits: []steps.Reason{{
			Is: !v.Ready || v.Busy != "", Says: "It goes on when the SampleDB is Ready" + steps.Because(v.Busy),
		}}},
		{Phase: major.PhaseChecking, Work: &v.Check, Says: "The databases are looked through"},
		{Phase: major.PhaseBackingUp, Work: &v.Backup, Says: "A backup is taken, of which the second side is made"},
		{
			Phase: PhasePublishing, Task: TaskPublish, Work: &v.Publish,
			Says: "Publications and slots are made in each database",
		},
		{Phase: PhaseCopying, Work: &v.Copy, Says: "The second side is made of the backup, and upgraded"},
		{
			Phase: PhaseFollowing, Task: TaskFollow, Work: &v.Follow,
			Says: "The second side follows, and has not caught up yet",
		},
		{
			Phase: PhaseComparing, Former: v.former(), Task: TaskCompare, Work: &v.Compare,
			Says: "All rows of both sides are compared",
		},
		{
			Phase: PhaseReady, Former: v.former(), Task: TaskPrepare, Work: &v.Prepare, Says: "The link back is made",
		},
	}
	moves := fmt.Sprintf("no client is let in for %s at most when clients move there", PausePatience)
	rows = append(rows, v.change(PhaseChanging, PhaseReady, moves)...)
	return v.table(append(rows, steps.Row{Phase: PhaseChanged, Begins: v.opens(v.To)}))
}

// ToBlue are the steps while green serves, until blue does. Coming home, the new version moves to the SampleDB's own
// instances: their data is upgraded too, and follows. Before any change to blue comes the same as before the one to
// green.
func (v SidesView) ToBlue() steps.Table {
	here, opens := v.whileGreen(), steps.Row{Phase: PhaseChangingBack, Begins: v.opens(v.From)}
	rows := []steps.Row{{
		Phase: here, Task: v.onceBegun(TaskSettle, v.Settle), Work: &v.Settle, Until: v.Until,
		Says: v.greenServes() + ", and the former side begins to follow it", Fail: v.settleFails,
	}}
	add := func(task Task, work *Work, says string) {
		task = v.onceBegun(task, *work)
		rows = append(rows, steps.Row{Phase: here, Former: v.former(), Task: task, Work: work, Says: says,
			Fail: func(why string) steps.Decision { return v.stays(task, why) }})
	}
	if v.home() {
		opens = steps.Row{Phase: PhaseComingHome, Begins: v.opens(v.To)}
		add(TaskLeave, &v.Leave, "Blue stops following")
		add(TaskInPlace, &v.InPlace, "The data of blue is upgraded")
		add(TaskReturn, &v.Return, "Blue follows again")
	}
	if v.home() || v.Back || v.Phase == PhaseChangingBack {
		add(TaskFollow, &v.Follow, "Blue has not caught up yet")
		add(TaskCompare, &v.Compare, "All rows of both sides are compared")
		add(TaskPrepare, &v.Prepare, "The other link is made")
		rows = append(append(rows, v.change(PhaseChangingBack, here, "again when the data comes home")...), opens)
	}
	return v.table(append(rows, steps.Row{Phase: here, Until: v.Until, Waits: []steps.Reason{{Is: true,
		Says: fmt.Sprintf("%s, and %d follows it, so that there is a way back, until it is accepted", v.greenServes(),
			v.From)}}}))
}

func (v SidesView) table(rows []steps.Row) steps.Table {
	t := steps.Table{Now: v.Now, Rows: rows, Fail: v.cancel}
	if !v.Asked && !v.Back { // the way back is always asked for
		t.Window = v.Window
	}
	return t
}

// change are the steps in which sides change: the moment for it is awaited, which does not come soon again when it was
// put off, and then comes the pause. What fails is put off.
func (v SidesView) change(pause, meanwhile Phase, heading string) []steps.Row {
	putOff := func(why string) steps.Decision {
		return steps.Decision{Phase: meanwhile, PutOff: true, Failure: why, At: v.Now.Add(PutOff),
			Says: "The change of sides was put off: " + why}
	}
	again, former := v.Since.Add(PutOff), v.former()
	pod := Work{Done: v.Waits, Says: v.Hand.Says}
	if !v.Waits {
		pod.Failed = v.Hand.Failed
	}
	return []steps.Row{
		{Phase: meanwhile, Former: former, Waits: []steps.Reason{
			{
				Is:   v.Serves == Blue && v.Unshown != "",
				Says: "All is ready, and the change of sides waits: " + v.Unshown,
			},
			{
				Is: v.Tried > 0 && v.Now.Before(again), At: again, Says: fmt.Sprintf(
					"The change of sides was put off: %s. It is tried again at %s", v.Failure,
					again.UTC().Format(time.RFC3339)),
			},
			{
				Is: v.Tried >= Tries && !v.Asked, Says: fmt.Sprintf("All is ready, and the change of sides was put "+
					"off %d times: %s. It is tried again with the annotation toban.dev/update=now", v.Tried, v.Failure),
			},
		}},
		{
			Phase: meanwhile, Former: former,
			Window: "All is ready. Sides change in the next window, which opens at %s",
		},
		{
			Phase: meanwhile, Former: former, Task: v.onceBegun(TaskChange, Work{}), Work: &pod, Fail: putOff,
			Says: "The Pod that hands over is being started",
		},
		v.pause(pause, heading, putOff),
	}
}

// former is why the last change of sides was put off, "" where none was. It is said also while rows are compared anew.
func (v SidesView) former() string {
	if v.Tried == 0 {
		return ""
	}
	return v.Failure
}

// pause is the step in which no client is let in, until the side that served is closed and the other one has all.
func (v SidesView) pause(phase Phase, heading string, putOff func(why string) steps.Decision) steps.Row {
	until := v.Now.Add(PausePatience)
	if v.Phase == phase {
		until = v.Since.Add(PausePatience)
	}
	return steps.Row{
		Phase: phase, Heading: heading, Kept: true, Writes: steps.WritesPause, Until: until,
		Begins: "No client is let in, until the other side serves",
		Fails: []steps.Reason{
			{Is: v.Broken != "", Says: v.Broken},
			{Is: v.Hand.Failed != "", Says: v.Hand.Failed},
			{
				Is:   v.handedOver() && !v.Compare.Done,
				Says: "another primary was elected, and all rows are compared anew",
			},
			{
				Is:   !v.handedOver() && !v.Now.Before(until),
				Says: fmt.Sprintf("it was not done after %s%s", PausePatience, steps.Because(v.Hand.Says)),
			},
		},
		Fail:  putOff,
		Waits: []steps.Reason{{Is: !v.handedOver(), Says: "No client is let in" + steps.Because(v.Hand.Says)}},
	}
}

// handedOver says that the side that served lets nobody in, and the other one has all.
func (v SidesView) handedOver() bool { return v.Closed && v.Hand.Done }

func (v SidesView) opens(version int) string {
	return fmt.Sprintf("PostgreSQL %d is let to serve", version)
}

func (v SidesView) greenServes() string { return fmt.Sprintf("PostgreSQL %d serves", v.To) }

// wayBackTaken is why an upgrade counts as failed that somebody has taken back.
const wayBackTaken = "the way back was asked for"

// back is about blue that serves again, or is to.
func (v SidesView) back() steps.Decision {
	switch {
	case v.home():
		return v.arrive()
	case v.Open:
		return v.cancel(wayBackTaken)
	}
	return steps.Decision{Phase: PhaseChangingBack, Says: v.opens(v.From)}
}

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

// onGreen is while green is to serve. What has begun with blue's data goes on, whatever becomes of green: an instance
// of blue that started in the middle of that would undo it.
func (v SidesView) onGreen() steps.Decision {
	d := v.followed()
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
func (v SidesView) gone() steps.Decision {
	says := "No side serves: " + v.Broken
	switch home := v.home(); {
	case !home && v.Back:
		return steps.Decision{Phase: PhaseChangingBack, Says: v.opens(v.From)}
	case !home:
		says += ". The annotation toban.dev/upgrade-back has the former side serve, with all that it has followed. " +
			"Its sequences are where they were at the change: set them"
	}
	return steps.Decision{Phase: v.whileGreen(), Failure: v.Broken, Says: says}
}

// followed is while green serves, no change is under way, and blue follows.
func (v SidesView) followed() steps.Decision {
	if !v.Open || v.Phase != PhaseChanged && v.Phase != PhaseComingHome { // the work of a way back has another link
		says := v.opens(v.To)
		if v.Unready != "" {
			says = v.greenServes() + ". It goes on, and sides can change, when all instances of the second side are " +
				"ready: " + v.Unready
		}
		return steps.Decision{Phase: v.whileGreen(), Says: says}
	}
	d := v.ToBlue().Decide(v.Phase)
	if v.Broken == "" {
		return d
	}
	return steps.Decision{Phase: v.whileGreen(), At: v.Until, Task: d.Task, Says: v.greenServes() +
		". There is no way back, because the former side does not follow any more: " + v.Broken}
}

// onceBegun is a task, but for one that would begin now although the link is broken.
func (v SidesView) onceBegun(task Task, work Work) Task {
	if v.Broken != "" && !work.Started {
		return ""
	}
	return task
}

// settleFails is about blue that can't follow green.
func (v SidesView) settleFails(why string) steps.Decision {
	return steps.Decision{Phase: v.whileGreen(), At: v.Until, Task: v.onceBegun(TaskSettle, v.Settle),
		Says: v.greenServes() + ". There is no way back, because the former side could not be made to follow: " + why}
}

// stays is about work that has failed while green serves, which goes on.
func (v SidesView) stays(task Task, why string) steps.Decision {
	d := steps.Decision{Phase: v.whileGreen(), Task: task, Failure: why, Says: v.greenServes() +
		" on the second side. The SampleDB's own instances can't take over yet: " + why}
	if task == TaskInPlace {
		d.Says += ". When that is mended, try again with the annotation toban.dev/update=now"
	}
	return d
}

// arrive is about blue that serves with the new version.
func (v SidesView) arrive() steps.Decision {
	switch {
	case !v.Open:
		return steps.Decision{Phase: PhaseComingHome, Says: fmt.Sprintf("PostgreSQL %d is let to serve", v.To)}
	case !v.Removed.Done:
		return steps.Decision{Phase: PhaseComingHome, Says: "The second side is removed" +
			steps.Because(v.Removed.Failed+v.Removed.Says)}
	}
	return steps.Decision{Phase: major.PhaseUpgraded, Says: fmt.Sprintf("PostgreSQL %d takes writes", v.To)}
}

// cancel removes green, and all that there is of it on blue. It has then failed, or was not wanted.
func (v SidesView) cancel(why string) steps.Decision {
	if !v.Removed.Done {
		return steps.Decision{Phase: PhaseCancelling, Failure: why,
			Says: "The second side is removed" + steps.Because(why) + steps.Because(v.Removed.Failed+v.Removed.Says)}
	}
	v.Failure = why
	return v.failed()
}

// failed says that blue serves, and nothing of green is left.
func (v SidesView) failed() steps.Decision {
	if v.Failure == "" {
		return steps.Decision{Phase: major.PhaseFailed, Says: fmt.Sprintf("PostgreSQL %d serves, and nothing is left "+
			"of the upgrade", v.From)}
	}
	if v.Failure == wayBackTaken {
		return steps.Decision{Phase: major.PhaseFailed, Failure: v.Failure, Says: fmt.Sprintf("PostgreSQL %d serves "+
			"again, with all that was written, because %s. Set spec.version back to %d, or begin anew with the "+
			"annotation toban.dev/update=now", v.From, v.Failure, v.From)}
	}
	return steps.Decision{Phase: major.PhaseFailed, Failure: v.Failure, Says: fmt.Sprintf("PostgreSQL %d serves as "+
		"before, because %s. When that is mended, try again with the annotation toban.dev/update=now, or set "+
		"spec.version back to %d", v.From, v.Failure, v.From)}
}

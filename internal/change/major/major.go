package major

import (
	"fmt"
	"time"

	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/window"
)

// Phase is how far an upgrade to another major version is (docs/upgradesteps.md, "A newer major version").
type Phase = steps.Phase

// The phases in their order. The database serves before Closing, after Starting, and again after Failed.
const (
	PhaseWaiting    Phase = "Waiting"
	PhasePulling    Phase = "Pulling"
	PhaseChecking   Phase = "Checking"
	PhaseBackingUp  Phase = "BackingUp"
	PhaseRehearsing Phase = "Rehearsing"
	PhasePreparing  Phase = "Preparing"
	PhaseClosing    Phase = "Closing"
	PhaseUpgrading  Phase = "Upgrading"
	PhaseStarting   Phase = "Starting"
	PhaseUpgraded   Phase = "Upgraded"
	PhaseFailed     Phase = "Failed"
)

// ClosePatience is for how long clients are sent away and instances stop, before an upgrade is given up and the
// database serves again as before. OpenPatience is for how long the new version may start before that is told.
const (
	ClosePatience = 2 * time.Minute
	OpenPatience  = 5 * time.Minute
)

// AnswerPatience is for how long nobody may answer who upgrades the data, while no instance runs, before the upgrade is
// given up. LostPatience is the same where Kubernetes knows nothing of the Pod either, because its node is lost. A Pod
// that answers may take as long as it needs.
const (
	AnswerPatience = 10 * time.Minute
	LostPatience   = time.Minute
)

// Work is how far something is that an upgrade needs: a Job, a backup, the nodes with the image.
type Work = steps.Work

// gone says why nobody can be counted on any more to do some work, "" for somebody can.
func gone(w Work) string {
	switch {
	case w.Lost != "" && w.Silent >= LostPatience:
		return fmt.Sprintf("has not answered for %s, and Kubernetes does not know what has become of it (%s)",
			w.Silent.Round(time.Second), w.Lost)
	case w.Silent >= AnswerPatience:
		return fmt.Sprintf("has not answered for %s", w.Silent.Round(time.Second))
	}
	return ""
}

// MajorView is all that a decision about an upgrade to another major version is made of.
type MajorView struct {
	Now time.Time
	// From is the major version of the data, To the one that the spec wants.
	From, To int
	// Phase is the present one, Since when it began.
	Phase Phase
	Since time.Time
	// Failure is why the last try has failed, Tried that the spec is still the same and nobody asks for another try.
	Failure string
	Tried   bool
	// Ready says that the SampleDB is, but for the upgrade; Busy is what else is under way, "" for nothing.
	Ready bool
	Busy  string
	// Window is that of spec.update, nil for none; Asked says that somebody asks not to wait for it.
	Window *window.Window
	Asked  bool
	// Pull, Check, Backup, Rehearsal and Job are the work. Backup and Rehearsal are done where none is wanted.
	Pull, Check, Backup, Rehearsal, Job Work
	// Waits says that the Job waits to be told to begin.
	Waits bool
	// Instance is the one on whose volume the data is upgraded, Primary the present one, "" where none takes writes.
	Instance, Primary string
	// Closed says that no instance lets a client in and none is there any more; Stopped that no instance runs.
	Closed, Stopped bool
	// TakenOver says that the instances are to run the new data; Serves that a primary does.
	TakenOver, Serves bool
	// Trouble is what keeps the new version from starting, "" for nothing known; Back is how to go back by hand.
	Trouble, Back string
}

// MajorDecision is the phase that an upgrade is in now, and what is to be said about it.
type MajorDecision = steps.Decision

// DecideMajor says in which phase an upgrade is. It only goes forward, or fails: before the instances are to run the
// new data any failure leads back to the former version, after that none does.
func DecideMajor(v MajorView) MajorDecision {
	from := v.Phase
	switch {
	case v.TakenOver && from != PhaseUpgraded:
		from = PhaseStarting
	case !v.TakenOver && from == PhaseFailed && v.Tried:
		return v.failed()
	}
	return v.Steps().Decide(from)
}

// Steps are those of an upgrade in place. The database serves before clients are sent away, and all that is done
// meanwhile is looked at each time. From the start of the new version on there is no way back by itself: what is
// written is in the new data only.
func (v MajorView) Steps() steps.Table {
	t := steps.Table{Now: v.Now, Window: v.Window, Fail: v.fail, Rows: []steps.Row{
		{Phase: PhaseWaiting, Waits: []steps.Reason{{
			Is: !v.Ready || v.Busy != "", Says: "It begins when the SampleDB is Ready" + steps.Because(v.Busy),
		}}},
		{Phase: PhasePulling, Work: &v.Pull, Says: "The nodes of the instances get the image"},
		{Phase: PhaseChecking, Work: &v.Check, Says: "The new version's programs check the databases"},
		{Phase: PhaseBackingUp, Work: &v.Backup, Says: "A backup is taken"},
		{Phase: PhaseRehearsing, Work: &v.Rehearsal, Says: "The upgrade is rehearsed on a copy"},
		{
			Phase:  PhasePreparing,
			Window: "All is checked. The data is upgraded in the next window, which opens at %s",
			Work:   &Work{Failed: v.Job.Failed, Done: v.Job.Started && v.Waits, Says: v.Job.Says},
			Says:   "The Pod that upgrades the data is being started",
			Waits: []steps.Reason{{
				Is: v.Instance != v.Primary, Says: "The Pod that upgrades the data moves to the volume of " + v.Primary,
			}},
		},
		v.closing(),
		v.upgrading(),
		{
			Phase: PhaseStarting, Kept: v.TakenOver, Writes: steps.WritesDown,
			Begins: "The instances start with the new version",
			Waits:  []steps.Reason{{Is: !v.Serves, Says: v.starting()}},
		},
		{Phase: PhaseUpgraded, Kept: v.TakenOver, Begins: fmt.Sprintf("PostgreSQL %d takes writes", v.To)},
	}}
	if v.Asked {
		t.Window = nil
	}
	return t
}

// closing goes on when nobody can write any more, whoever leads. Another primary than the one on whose volume the data
// is upgraded may have acknowledged what that one lacks.
func (v MajorView) closing() steps.Row {
	return steps.Row{
		Phase: PhaseClosing, Kept: true, Writes: steps.WritesDown,
		Begins: "No client is let in, until the new version runs",
		Fails: []steps.Reason{
			{Is: v.Job.Failed != "", Says: v.Job.Failed},
			{
				Is:   v.Primary != "" && v.Primary != v.Instance,
				Says: v.Primary + " became primary while clients were sent away",
			},
			{
				Is: v.late(ClosePatience), Says: fmt.Sprintf("after %s not every instance had said that no client is "+
					"there any more", ClosePatience),
			},
		},
		Waits: []steps.Reason{{Is: !v.Closed, Says: "The sessions of clients end"}},
	}
}

// upgrading goes on when the data is upgraded, or back when that can't be counted on any more. What the Pod does after
// that is of no use and does no harm: its Job is removed, and no instance takes over what it is not told to.
func (v MajorView) upgrading() steps.Row {
	works := v.Stopped && !v.Job.Done
	return steps.Row{
		Phase: PhaseUpgrading, Kept: true, Writes: steps.WritesDown, Begins: "The instances stop",
		Fails: []steps.Reason{
			{Is: v.Job.Failed != "", Says: v.Job.Failed},
			{
				Is:   !v.Stopped && v.late(ClosePatience),
				Says: fmt.Sprintf("after %s not every instance had stopped", ClosePatience),
			},
			{Is: works && !v.Job.Started, Says: "the Job that upgrades the data is gone"},
			{
				Is:   works && gone(v.Job) != "",
				Says: fmt.Sprintf("the Pod that upgrades the data on the volume of %s %s", v.Instance, gone(v.Job)),
			},
		},
		Waits: []steps.Reason{
			{Is: !v.Stopped, Says: "The instances stop"},
			{Is: works, Says: "The data is being upgraded" + steps.Because(v.Job.Says)},
		},
	}
}

// starting is what is said until the new version takes writes.
func (v MajorView) starting() string {
	if !v.late(OpenPatience) {
		return "The instances start with the new version"
	}
	return fmt.Sprintf("PostgreSQL %d has not taken writes on %s for %s%s. No client was let in since. Mend what "+
		"keeps it from starting, and it goes on by itself; or go back by hand: %s", v.To, v.Instance, OpenPatience,
		steps.Because(v.Trouble), v.Back)
}

// failed says that the former version runs on, or again.
func (v MajorView) failed() MajorDecision {
	return MajorDecision{Phase: PhaseFailed, Failure: v.Failure, Says: fmt.Sprintf("PostgreSQL %d runs as before, "+
		"because %s. When that is mended, try again with the annotation toban.dev/update=now, or set spec.version "+
		"back to %d", v.From, v.Failure, v.From)}
}

func (v MajorView) late(patience time.Duration) bool { return v.Now.Sub(v.Since) > patience }

func (v MajorView) fail(why string) MajorDecision {
	v.Failure = why
	return v.failed()
}

package upgrade

import (
	"fmt"
	"time"
	"toban.dev/internal/change/window"
)

// Phase is how far an upgrade to another major version is (docs/upgradesteps.md, "A newer major version").
type Phase string

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
type Work struct {
	// Started says that there is one, Done that it has ended well.
	Started, Done bool
	// Failed is why it has ended without success, "" where it has not.
	Failed string
	// Says is how far it is, for people.
	Says string
	// Silent is for how long who does it has not answered, 0 where he does; Lost is why Kubernetes does not know what
	// has become of him, "" where it does.
	Silent time.Duration
	Lost   string
}

// gone says why nobody can be counted on any more to do the work, "" for somebody can.
func (w Work) gone() string {
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
type MajorDecision struct {
	Phase Phase
	Says  string
	// Failure is why it has failed, with PhaseFailed.
	Failure string
	// At is when that changes by itself, zero for never.
	At time.Time
}

// DecideMajor says in which phase an upgrade is. It only goes forward, or fails: before the instances are to run the
// new data any failure leads back to the former version, after that none does.
func DecideMajor(v MajorView) MajorDecision {
	if v.TakenOver {
		return v.start()
	}
	switch v.Phase {
	case PhaseClosing:
		return v.closing()
	case PhaseUpgrading:
		return v.upgrading()
	case PhaseFailed:
		if v.Tried {
			return v.failed()
		}
	}
	return v.prepare()
}

// prepare is what is done while the database serves. All of it is looked at each time, so that what was done and is
// gone is done again.
func (v MajorView) prepare() MajorDecision {
	if !v.Ready || v.Busy != "" {
		return MajorDecision{Phase: PhaseWaiting, Says: "It begins when the SampleDB is Ready" + because(v.Busy)}
	}
	for _, step := range []struct {
		phase Phase
		work  Work
		says  string
	}{
		{PhasePulling, v.Pull, "The nodes of the instances get the image"},
		{PhaseChecking, v.Check, "The new version's programs check the databases"},
		{PhaseBackingUp, v.Backup, "A backup is taken"},
		{PhaseRehearsing, v.Rehearsal, "The upgrade is rehearsed on a copy"},
		{PhasePreparing, v.Job, "The Pod that upgrades the data is being started"},
	} {
		switch {
		case step.work.Failed != "":
			return v.fail(step.work.Failed)
		case step.phase == PhasePreparing:
			return v.begin(step.work)
		case !step.work.Done:
			return MajorDecision{Phase: step.phase, Says: step.says + because(step.work.Says)}
		}
	}
	return MajorDecision{} // not reached: the last step returns
}

// begin is about the moment at which clients are sent away: when all is ready, and in the window.
func (v MajorView) begin(job Work) MajorDecision {
	preparing := func(at time.Time, format string, args ...any) MajorDecision {
		return MajorDecision{Phase: PhasePreparing, Says: fmt.Sprintf(format, args...), At: at}
	}
	if v.Window != nil && !v.Asked && !v.Window.Open(v.Now) {
		next := v.Window.Next(v.Now)
		return preparing(next, "All is checked. The data is upgraded in the next window, which opens at %s",
			stamp(next))
	}
	switch {
	case !job.Started || !v.Waits:
		return preparing(time.Time{}, "The Pod that upgrades the data is being started%s", because(job.Says))
	case v.Instance != v.Primary:
		return preparing(time.Time{}, "The Pod that upgrades the data moves to the volume of %s", v.Primary)
	}
	return MajorDecision{Phase: PhaseClosing, Says: "No client is let in, until the new version runs"}
}

// closing goes on when nobody can write any more, whoever leads. Another primary than the one on whose volume the data
// is upgraded may have acknowledged what that one lacks.
func (v MajorView) closing() MajorDecision {
	switch {
	case v.Job.Failed != "":
		return v.fail(v.Job.Failed)
	case v.Primary != "" && v.Primary != v.Instance:
		return v.fail(fmt.Sprintf("%s became primary while clients were sent away", v.Primary))
	case v.late(ClosePatience):
		return v.fail(fmt.Sprintf("after %s not every instance had said that no client is there any more",
			ClosePatience))
	case !v.Closed:
		return MajorDecision{Phase: PhaseClosing, Says: "The sessions of clients end"}
	}
	return MajorDecision{Phase: PhaseUpgrading, Says: "The instances stop"}
}

// upgrading goes on when the data is upgraded, or back when that can't be counted on any more. What the Pod does after
// that is of no use and does no harm: its Job is removed, and no instance takes over what it is not told to.
func (v MajorView) upgrading() MajorDecision {
	switch {
	case v.Job.Failed != "":
		return v.fail(v.Job.Failed)
	case v.Job.Done && v.Stopped:
		return MajorDecision{Phase: PhaseStarting, Says: "The instances start with the new version"}
	case !v.Stopped && v.late(ClosePatience):
		return v.fail(fmt.Sprintf("after %s not every instance had stopped", ClosePatience))
	case !v.Stopped:
		return MajorDecision{Phase: PhaseUpgrading, Says: "The instances stop"}
	case !v.Job.Started:
		return v.fail("the Job that upgrades the data is gone")
	case v.Job.gone() != "":
		return v.fail(fmt.Sprintf("the Pod that upgrades the data on the volume of %s %s", v.Instance, v.Job.gone()))
	}
	return MajorDecision{Phase: PhaseUpgrading, Says: "The data is being upgraded" + because(v.Job.Says)}
}

// start is about the new version. There is no way back by itself from here on: what is written is in the new data only.
func (v MajorView) start() MajorDecision {
	switch {
	case v.Phase == PhaseUpgraded:
		return MajorDecision{Phase: PhaseUpgraded}
	case v.Serves:
		return MajorDecision{Phase: PhaseUpgraded, Says: fmt.Sprintf("PostgreSQL %d takes writes", v.To)}
	case v.late(OpenPatience):
		return MajorDecision{Phase: PhaseStarting, Says: fmt.Sprintf("PostgreSQL %d has not taken writes on %s for "+
			"%s%s. No client was let in since. Mend what keeps it from starting, and it goes on by itself; or go back "+
			"by hand: %s", v.To, v.Instance, OpenPatience, because(v.Trouble), v.Back)}
	}
	return MajorDecision{Phase: PhaseStarting, Says: "The instances start with the new version"}
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

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

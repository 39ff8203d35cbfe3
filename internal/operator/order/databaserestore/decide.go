package databaserestore

import (
	"cmp"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
)

// view is all that the decision depends on.
type view struct {
	now, deadline time.Time
	cancel        bool
	// notFound says that there is no SampleDB. notReady is why nothing can be restored from its archive now, noSource
	// why what is named can't be restored from, impossible why that will never change; "" where there is no such
	// reason.
	notFound                       bool
	notReady, noSource, impossible string
	job                            jobView
}

// jobView is the Job.
type jobView struct {
	state jobs.State
	// foreign says that the Job of the name is somebody else's.
	foreign bool
	// message says how far it is, or how it has ended.
	message string
}

// Action is what is done.
type Action string

// The actions.
const (
	ActionNone   Action = "none"
	ActionCreate Action = "create" // the Job
	ActionStop   Action = "stop"   // delete the Job
)

// Decision is what is done, and what the condition Complete says.
type Decision struct {
	Action Action
	// Over says that nothing will be done about it any more.
	Over    bool
	Reason  string
	Message string
}

func wait(reason, message string) Decision { return Decision{ActionNone, false, reason, message} }
func over(reason, message string) Decision { return Decision{ActionNone, true, reason, message} }

// decide says what to do. It is pure. The first rule that holds counts: what has ended has ended, whatever is wished
// for; then the user's word; then time; and only then what is under way or may begin.
func decide(v view) Decision {
	if !v.job.foreign {
		switch v.job.state {
		case jobs.Complete:
			return over(v1.ReasonCompleted, v.job.message)
		case jobs.Failed:
			return over(v1.ReasonFailed, v.job.message)
		case jobs.Late:
			return over(v1.ReasonDeadlineExceeded, late(v.job.message))
		case jobs.None, jobs.Running, jobs.Ending:
		}
	}
	switch {
	case v.cancel:
		return v.stop(v1.ReasonCancelled, "it was cancelled")
	case !v.now.Before(v.deadline):
		return v.stop(v1.ReasonDeadlineExceeded, late(v.waits().Message))
	}
	if d := v.waits(); d.Reason != "" {
		return d
	}
	return Decision{ActionCreate, false, v1.ReasonRunning, "its Pod is being started"}
}

// waits is the decision to let it go on or wait, without a reason where nothing keeps it from beginning.
func (v view) waits() Decision {
	switch {
	case v.job.foreign:
		return wait(v1.ReasonBackupNameTaken, v.job.message)
	case v.job.state == jobs.Ending:
		return wait(v1.ReasonWaiting, v.job.message)
	case v.job.state == jobs.Running:
		return wait(v1.ReasonRunning, v.job.message)
	case v.notFound:
		return wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.notReady != "":
		return wait(v1.ReasonArchiveNotReady, v.notReady)
	case v.noSource != "":
		return wait(v1.ReasonRestoreSourceNotFound, v.noSource)
	case v.impossible != "":
		return over(v1.ReasonFailed, v.impossible)
	}
	return Decision{}
}

// stop ends it, with its Job if there is one.
func (v view) stop(reason, message string) Decision {
	d := over(reason, message)
	if v.job.state == jobs.Running && !v.job.foreign {
		d.Action = ActionStop
	}
	return d
}

func late(message string) string {
	return "it took longer than spec.deadline; last: " + cmp.Or(message, "it had not begun")
}

package order

import (
	"cmp"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
)

// Action is what is done. A kind may have some of its own.
type Action string

// The actions of every kind.
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

// Wait is the decision to do nothing now, with its reason.
func Wait(reason, message string) Decision { return Decision{ActionNone, false, reason, message} }

// Over is the decision that it has ended.
func Over(reason, message string) Decision { return Decision{ActionNone, true, reason, message} }

// Create is the decision to begin.
func Create() Decision {
	return Decision{ActionCreate, false, v1.ReasonRunning, "its Pod is being started"}
}

// Job is the Job of an order, as a decision sees it.
type Job struct {
	State jobs.State
	// Foreign says that the Job of the name is somebody else's.
	Foreign bool
	// Message says how far it is, or how it has ended.
	Message string
}

// View is what the decisions about the orders of all kinds depend on.
type View struct {
	Now, Deadline time.Time
	Cancel        bool
	Job           Job
}

// Decide says what to do. It is pure. The first rule that holds counts: what has ended has ended, whatever is wished
// for; then the user's word; then time; and only then what is under way or may begin. complete decides where the Job
// has ended well, goOn what is under way: without a reason nothing keeps the order from beginning.
func (v View) Decide(complete, goOn func() Decision) Decision {
	if !v.Job.Foreign {
		switch v.Job.State {
		case jobs.Complete:
			return complete()
		case jobs.Failed:
			return Over(v1.ReasonFailed, v.Job.Message)
		case jobs.Late:
			return Over(v1.ReasonDeadlineExceeded, Late(v.Job.Message))
		case jobs.None, jobs.Running, jobs.Ending:
		}
	}
	switch {
	case v.Cancel:
		return v.Stop(v1.ReasonCancelled, "it was cancelled")
	case !v.Now.Before(v.Deadline):
		return v.Stop(v1.ReasonDeadlineExceeded, Late(goOn().Message))
	}
	if d := goOn(); d.Reason != "" {
		return d
	}
	return Create()
}

// Begun is the decision to let a Job go on that is there, without a reason where there is none.
func (v View) Begun() Decision {
	switch {
	case v.Job.Foreign:
		return Wait(v1.ReasonBackupNameTaken, v.Job.Message)
	case v.Job.State == jobs.Ending:
		return Wait(v1.ReasonWaiting, v.Job.Message)
	case v.Job.State == jobs.Running:
		return Wait(v1.ReasonRunning, v.Job.Message)
	}
	return Decision{}
}

// Stop ends it, with its Job if there is one.
func (v View) Stop(reason, message string) Decision {
	d := Over(reason, message)
	if v.Job.State == jobs.Running && !v.Job.Foreign {
		d.Action = ActionStop
	}
	return d
}

// Late says of an order that it took too long, and what was last known of it.
func Late(message string) string {
	return "it took longer than spec.deadline; last: " + cmp.Or(message, "it had not begun")
}

package faultdrill

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/protocol"
)

// view is all that the decision depends on.
type view struct {
	now, deadline time.Time
	cancel        bool
	// notFound says that there is no SampleDB. notAllowed is why it may not be broken, notReady why no fault may be
	// added to what there is now; "" where there is no such reason.
	notFound             bool
	notAllowed, notReady string
	job                  jobView
	// steady says that the clients write without an error.
	steady bool
	// ordered and struck are when the fault was ordered and done, zero for not yet; instance is which ones it is done
	// to, lasts is for how long it lasts, 0 where it does not last.
	ordered, struck time.Time
	instance        string
	lasts           time.Duration
	// byHand says that a person breaks something.
	byHand bool
	// result is what the clients have left, nil for nothing.
	result *protocol.DrillResult
	// wholeSince is since when the SampleDB is whole after the fault, zero where it is not; lacks is what it lacks
	// then. besides is what it has to have besides being Ready and Durable.
	wholeSince     time.Time
	lacks, besides string
	objectives     v1.FaultDrillObjectives
	abortAfter     time.Duration
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
	ActionStrike Action = "strike" // do the fault
	ActionStop   Action = "stop"   // delete the Job
)

// Decision is what is done, and what the conditions say.
type Decision struct {
	Action Action
	// Undo says that the fault is undone, too.
	Undo bool
	// Over says that nothing will be done about it any more.
	Over    bool
	Reason  string
	Message string
	// Verdict is there when it has a result.
	Verdict *Verdict
}

func wait(reason, message string) Decision {
	return Decision{Reason: reason, Message: message, Action: ActionNone}
}
func over(reason, message string) Decision {
	return Decision{Reason: reason, Message: message, Action: ActionNone, Over: true}
}

// decide says what to do. It is pure. The first rule that holds counts: what has ended has ended, whatever is wished
// for; then the user's word; then time; and only then what is under way or may begin. Nothing that still lasts outlives
// the drill, or the moment at which its clients have given up.
func decide(v view) Decision {
	d := v.next()
	ends := d.Over || v.result != nil && v.result.Aborted
	d.Undo = ends && !v.struck.IsZero() && v.now.Before(v.struck.Add(v.lasts))
	return d
}

func (v view) next() Decision {
	if !v.job.foreign {
		switch v.job.state {
		case jobs.Complete:
			return v.ended()
		case jobs.Failed:
			return over(v1.ReasonFailed, "its clients have failed: "+v.job.message)
		case jobs.Late:
			return over(v1.ReasonDeadlineExceeded, late(v.job.message))
		case jobs.None, jobs.Running, jobs.Ending:
		}
	}
	switch {
	case v.cancel:
		return v.stop(v1.ReasonCancelled, "it was cancelled")
	case !v.now.Before(v.deadline):
		return v.stop(v1.ReasonDeadlineExceeded, late(v.goOn().Message))
	}
	return v.goOn()
}

// goOn lets it begin, strike, or wait.
func (v view) goOn() Decision {
	switch {
	case v.job.foreign:
		return wait(v1.ReasonBackupNameTaken, v.job.message)
	case v.job.state == jobs.Running:
		return v.running()
	case v.job.state == jobs.Ending || !v.ordered.IsZero(): // another Job would not see the fault
		return over(v1.ReasonFailed, "its Job is gone, and what its clients have seen with it")
	case v.notFound:
		return wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.notAllowed != "":
		return wait(v1.ReasonDrillNotAllowed, v.notAllowed)
	case v.notReady != "":
		return wait(v1.ReasonNotReadyForDrill, v.notReady)
	}
	return Decision{Action: ActionCreate, Reason: v1.ReasonRunning, Message: "its Pod is being started"}
}

// running is what to do while the clients write.
func (v view) running() Decision {
	switch {
	case !v.struck.IsZero():
		return wait(v1.ReasonRunning, broken(v.instance, v.byHand))
	case !v.ordered.IsZero():
		return v.stop(v1.ReasonFailed, fmt.Sprintf("the operator stopped while it broke %s, so that it is not known "+
			"whether and when that was done: create another FaultDrill", v.instance))
	case !v.steady:
		return wait(v1.ReasonRunning, v.job.message)
	case v.notFound, v.notAllowed != "", v.notReady != "":
		return wait(v1.ReasonRunning, "the clients write, and nothing is broken yet: "+
			cmp.Or(v.notAllowed, v.notReady, "the SampleDB is gone"))
	}
	return Decision{Action: ActionStrike, Reason: v1.ReasonRunning, Message: "the fault is being done"}
}

// broken says what was done to which instances, or that a person is to do it.
func broken(instances string, byHand bool) string {
	if byHand {
		return "the clients write: break now what you want to break (ByHand)"
	}
	was := "was"
	if strings.Contains(instances, between) {
		was = "were"
	}
	return fmt.Sprintf("%s %s broken, and the clients write on", instances, was)
}

// ended is what to do when the clients have ended well.
func (v view) ended() Decision {
	switch {
	case v.result == nil:
		return over(v1.ReasonFailed, "its Pod was removed before it could say what the clients have seen")
	case v.struck.IsZero():
		return over(v1.ReasonFailed, "nothing was broken while the clients wrote: "+
			cmp.Or(v.notAllowed, v.notReady, "the operator was not there"))
	case !v.result.Aborted && v.result.Ended.Before(v.struck.Add(v.lasts)):
		return over(v1.ReasonFailed, "the clients ended before the fault: give spec.observe more time")
	case v.wholeSince.IsZero() && v.now.Before(v.struck.Add(v.objectives.WholeWithin.Duration)):
		return wait(v1.ReasonRunning, "the clients have ended; "+
			cmp.Or(v.lacks, "the SampleDB is not Ready and Durable again yet"))
	}
	verdict := judge(v)
	d := over(v1.ReasonCompleted, verdict.Message)
	d.Verdict = &verdict
	return d
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

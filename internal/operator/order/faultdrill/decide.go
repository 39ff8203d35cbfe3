package faultdrill

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/protocol"
)

// view is all that the decision depends on.
type view struct {
	order.View
	// notFound says that there is no SampleDB. notAllowed is why it may not be broken, notReady why no fault may be
	// added to what there is now; "" where there is no such reason.
	notFound             bool
	notAllowed, notReady string
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

// ActionStrike is to do the fault.
const ActionStrike order.Action = "strike"

// Decision is what is done, and what the conditions say.
type Decision struct {
	order.Decision
	// Undo says that the fault is undone, too.
	Undo bool
	// Verdict is there when it has a result.
	Verdict *Verdict
}

// decide says what to do. It is pure. Nothing that still lasts outlives the drill, or the moment at which its clients
// have given up.
func decide(v view) Decision {
	var verdict *Verdict
	d := v.Decide(func() (d order.Decision) { d, verdict = v.ended(); return d }, v.goOn)
	ends := d.Over || v.result != nil && v.result.Aborted
	return Decision{
		Decision: d, Verdict: verdict,
		Undo: ends && !v.struck.IsZero() && v.Now.Before(v.struck.Add(v.lasts)),
	}
}

// goOn lets it begin, strike, or wait.
func (v view) goOn() order.Decision {
	switch {
	case v.Job.Foreign:
		return order.Wait(v1.ReasonBackupNameTaken, v.Job.Message)
	case v.Job.State == jobs.Running:
		return v.running()
	case v.Job.State == jobs.Ending || !v.ordered.IsZero(): // another Job would not see the fault
		return order.Over(v1.ReasonFailed, "its Job is gone, and what its clients have seen with it")
	case v.notFound:
		return order.Wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.notAllowed != "":
		return order.Wait(v1.ReasonDrillNotAllowed, v.notAllowed)
	case v.notReady != "":
		return order.Wait(v1.ReasonNotReadyForDrill, v.notReady)
	}
	return order.Create()
}

// running is what to do while the clients write.
func (v view) running() order.Decision {
	switch {
	case !v.struck.IsZero():
		return order.Wait(v1.ReasonRunning, broken(v.instance, v.byHand))
	case !v.ordered.IsZero():
		return v.Stop(v1.ReasonFailed, fmt.Sprintf("the operator stopped while it broke %s, so that it is not known "+
			"whether and when that was done: create another FaultDrill", v.instance))
	case !v.steady:
		return order.Wait(v1.ReasonRunning, v.Job.Message)
	case v.notFound, v.notAllowed != "", v.notReady != "":
		return order.Wait(v1.ReasonRunning, "the clients write, and nothing is broken yet: "+
			cmp.Or(v.notAllowed, v.notReady, "the SampleDB is gone"))
	}
	return order.Decision{Action: ActionStrike, Reason: v1.ReasonRunning, Message: "the fault is being done"}
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
func (v view) ended() (order.Decision, *Verdict) {
	switch {
	case v.result == nil:
		return order.Over(v1.ReasonFailed, "its Pod was removed before it could say what the clients have seen"), nil
	case v.struck.IsZero():
		return order.Over(v1.ReasonFailed, "nothing was broken while the clients wrote: "+
			cmp.Or(v.notAllowed, v.notReady, "the operator was not there")), nil
	case !v.result.Aborted && v.Now.Before(v.struck.Add(v.lasts)): // by our clock alone: that of its node may differ
		return order.Over(v1.ReasonFailed, "the clients ended before the fault: give spec.observe more time"), nil
	case v.wholeSince.IsZero() && v.Now.Before(v.struck.Add(v.objectives.WholeWithin.Duration)):
		return order.Wait(v1.ReasonRunning, "the clients have ended; "+
			cmp.Or(v.lacks, "the SampleDB is not Ready and Durable again yet")), nil
	}
	verdict := judge(v)
	return order.Over(v1.ReasonCompleted, verdict.Message), &verdict
}

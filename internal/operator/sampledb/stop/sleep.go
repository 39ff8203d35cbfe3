package stop

import (
	"fmt"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
)

// The reasons of decisions about sleep (docs/stop.md, "Sleep").
const (
	sleepNotAsked = "NotAsked"     // neither spec.sleepAfter nor a pooler is there
	sleepOrdered  = "Ordered"      // spec.stopped or a window says whether it is stopped
	sleepStarts   = "Starts"       // it is being started
	sleepKept     = "KeptAwake"    // somebody has started it, or keeps it awake until a moment
	sleepWaits    = "ClientWaits"  // a client of a pooler waits
	sleepUnheard  = "PoolerSilent" // not every pooler says how its clients are
	sleepUnknown  = "NotKnown"     // not every instance says for how long no client has done anything
	sleepUsed     = "Used"         // a client has done something
	sleepSessions = "Sessions"     // a client has a server connection of a pooler
	sleepUnready  = "NotReady"     // something is not as it should be
	sleepBusy     = "Busy"         // something is under way that a stop would wait for
	sleepNotHeld  = "NotHeld"      // the poolers do not hold their clients
	sleepIdle     = "Idle"         // nobody uses it: it goes to sleep
	sleepSleeps   = "Sleeps"       // it sleeps, and nobody waits
)

// holdPatience is how long the poolers of a database that goes to sleep may take to hold their clients: as long as that
// takes, other clients wait.
const holdPatience = 10 * time.Second

// sleepAgain is after how long it is looked again whether a database may sleep, where nobody tells that it may.
const sleepAgain = 15 * time.Second

// sleepView is what a decision about sleep is made of.
type sleepView struct {
	now time.Time
	// after is spec.sleepAfter, 0 where there is none, or no pooler.
	after time.Duration
	// ordered says that the spec wants it to be stopped, or that it is not known.
	ordered bool
	// asleep is since when it sleeps or goes to sleep, zero where it does not. step is that of the stop, "" for none,
	// since when it began.
	asleep time.Time
	step   string
	since  time.Time
	// started is when somebody has started it last, or until when it is kept awake; zero for never.
	started time.Time
	// ready says that all is as wanted, busy what is under way, "" for nothing.
	ready bool
	busy  string
	// idle is for how long no client of the instances that say so has done anything, unknown are those that do not.
	idle    time.Duration
	unknown []string
	// poolers is how many Pods of poolers there are, unheard those that do not say how their clients are. waiting is
	// how many clients of the others wait, held whether all hold.
	poolers int
	unheard []string
	// active is how many clients have a server connection of one of them.
	waiting, active int
	held            bool
}

// sleepDecision is whether a database sleeps.
type sleepDecision struct {
	sleeps  bool
	reason  string
	message string
	// next is when it may be decided otherwise though nothing happens, zero where something tells.
	next time.Time
}

// decideSleep says whether a database is to sleep, or goes on sleeping.
func decideSleep(v sleepView) sleepDecision {
	switch {
	case v.after == 0:
		return sleepDecision{reason: sleepNotAsked}
	case v.ordered:
		return sleepDecision{reason: sleepOrdered}
	case v.step == v1.StopStarting, v.step != "" && v.asleep.IsZero():
		return sleepDecision{reason: sleepStarts}
	case v.started.After(v.now):
		return sleepDecision{reason: sleepKept, next: v.started,
			message: "it is kept awake until " + v.started.UTC().Format(time.RFC3339)}
	case !v.asleep.IsZero() && !v.started.Before(v.asleep):
		return sleepDecision{reason: sleepKept, message: "somebody has started it"}
	case v.waiting > 0:
		return sleepDecision{reason: sleepWaits, message: fmt.Sprintf("%d clients wait", v.waiting)}
	case v.step != "" && v.step != v1.StopWaiting:
		return sleepDecision{sleeps: true, reason: sleepSleeps}
	}
	return v.goesToSleep()
}

// goesToSleep is about a database that serves. What is not known keeps it awake.
func (v sleepView) goesToSleep() sleepDecision {
	idle, again := v.idle, v.now.Add(sleepAgain)
	if !v.started.IsZero() {
		idle = min(idle, v.now.Sub(v.started))
	}
	switch {
	case len(v.unknown) > 0:
		return sleepDecision{reason: sleepUnknown, next: again, message: "it is not known for how long no client of " +
			strings.Join(v.unknown, ", ") + " has done anything"}
	case idle < v.after:
		return sleepDecision{reason: sleepUsed, next: v.now.Add(v.after - idle), message: "clients do something"}
	case v.busy != "":
		return sleepDecision{reason: sleepBusy, message: v.busy}
	case len(v.unheard) > 0 || v.poolers == 0:
		return sleepDecision{reason: sleepUnheard, next: again, message: "not every pooler says how its clients are: " +
			strings.Join(v.unheard, ", ")}
	case v.asleep.IsZero() && v.active > 0:
		return sleepDecision{reason: sleepSessions, next: again,
			message: fmt.Sprintf("%d clients have a server connection of the pooler", v.active)}
	case v.asleep.IsZero() && !v.ready:
		return sleepDecision{reason: sleepUnready, next: again, message: "it is not ready"}
	case !v.asleep.IsZero() && !v.held && v.now.Sub(v.since) > holdPatience:
		return sleepDecision{reason: sleepNotHeld, next: again, message: "not all poolers hold their clients"}
	}
	return sleepDecision{sleeps: true, reason: sleepIdle,
		message: fmt.Sprintf("no client has done anything for %s", idle.Round(time.Second))}
}

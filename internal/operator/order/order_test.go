package order

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

func TestThePhaseFollowsFromTheReason(t *testing.T) {
	for reason, want := range map[string][2]string{ // while it goes on, and when it is over
		v1.ReasonCompleted:        {PhaseCompleted, PhaseCompleted},
		v1.ReasonCancelled:        {PhaseCancelled, PhaseCancelled},
		v1.ReasonRunning:          {PhaseRunning, PhaseRunning},
		v1.ReasonArchiveNotReady:  {PhasePending, PhaseFailed},
		v1.ReasonDeadlineExceeded: {PhasePending, PhaseFailed},
	} {
		if got := [2]string{Phase(reason, false), Phase(reason, true)}; got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

func TestEachStepIsToldOnce(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	state := func(reason string, attempts int32, started, completed bool) State {
		s := State{Attempts: attempts, Conditions: []metav1.Condition{
			{Type: v1.ConditionComplete, Reason: reason, Message: "says " + reason},
		}}
		if started {
			s.StartedAt = &at
		}
		if completed {
			s.CompletedAt = &at
		}
		return s
	}
	waits, runs := state(v1.ReasonWaiting, 0, false, false), state(v1.ReasonRunning, 1, true, false)
	for name, c := range map[string]struct {
		old, now State
		want     string
	}{
		"nothing has changed": {waits, waits, ""},
		"it begins":           {waits, runs, "Normal Started says Running"},
		"its first Pod":       {state(v1.ReasonRunning, 0, true, false), runs, ""},
		"another Pod": {
			runs, state(v1.ReasonRunning, 2, true, false), "Warning Retried says Running",
		},
		"all is there": {
			runs, state(v1.ReasonCompleted, 1, true, true), "Normal Completed says Completed",
		},
		"it was cancelled before it began": {
			waits, state(v1.ReasonCancelled, 0, false, true), "Normal Cancelled says Cancelled",
		},
		"it took too long": {
			runs, state(v1.ReasonDeadlineExceeded, 1, true, true), "Warning Failed says DeadlineExceeded",
		},
		"it was over already": {
			state(v1.ReasonFailed, 1, true, true), state(v1.ReasonFailed, 1, true, true), "",
		},
	} {
		var got []string
		for _, e := range Changes(c.old, c.now) {
			got = append(got, e.Kind+" "+e.Reason+" "+e.Message)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

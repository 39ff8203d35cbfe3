package stop

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/stop"
)

// What a server writes by itself goes to the archive for ever, and is no progress: else a stop would not end while a
// standby is away.
func TestAStopIsNotKeptByWhatProvesNothing(t *testing.T) {
	of := func(archived string, behind ...string) *v1.StopStatus {
		return &v1.StopStatus{Step: v1.StopProving, LSN: "0/5000148", ArchivedLSN: archived, Behind: behind}
	}
	for name, c := range map[string]struct {
		old, next *v1.StopStatus
		want      bool
	}{
		"nothing new":                       {of("0/5000000", "db-2"), of("0/5000000", "db-2"), false},
		"the archive goes further":          {of("0/5000000"), of("0/5000100"), true},
		"the archive has all since long":    {of("0/5000148", "db-2"), of("0/5000200", "db-2"), false},
		"one instance less lacks something": {of("0/5000148", "db-1", "db-2"), of("0/5000148", "db-2"), true},
		"one more lacks something":          {of("0/5000148"), of("0/5000148", "db-2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gotOn(c.old, c.next); got != c.want {
				t.Errorf("it got on: %t", got)
			}
		})
	}
}

// The status has the steps by the names that they have where it is decided.
func TestTheStatusHasTheSteps(t *testing.T) {
	for status, phase := range map[string]steps.Phase{
		v1.StopWaiting: stop.Waiting, v1.StopClosing: stop.Closing, v1.StopProving: stop.Proving,
		v1.StopStopping: stop.Stopping, v1.StopStopped: stop.Stopped, v1.StopStarting: stop.Starting,
	} {
		if status != string(phase) {
			t.Errorf("the status says %s, and the decision %s", status, phase)
		}
	}
}

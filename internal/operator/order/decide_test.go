package order

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
)

// The rules of every kind, by an order that may begin but for its SampleDB.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	job := func(state jobs.State, message string) func(*View) {
		return func(v *View) { v.Job = Job{State: state, Message: message} }
	}
	foreign := func(v *View) { v.Job.Foreign = true }
	cancel := func(v *View) { v.Cancel = true }
	late := func(v *View) { v.Deadline = v.Now }
	for name, c := range map[string]struct {
		view          []func(*View)
		waits         string
		action        Action
		over          bool
		reason, words string
	}{
		"it may begin":  {nil, "", ActionCreate, false, v1.ReasonRunning, "started"},
		"it waits":      {nil, "x", ActionNone, false, v1.ReasonWaiting, "x"},
		"its Job runs":  {[]func(*View){job(jobs.Running, "half")}, "x", ActionNone, false, v1.ReasonRunning, "half"},
		"it is deleted": {[]func(*View){job(jobs.Ending, "again")}, "x", ActionNone, false, v1.ReasonWaiting, "again"},
		"the Job is somebody else's": {[]func(*View){job(jobs.Complete, "rename"), foreign}, "x", ActionNone, false,
			v1.ReasonBackupNameTaken, "rename"},
		"complete, though cancelled and late": {[]func(*View){job(jobs.Complete, ""), cancel, late}, "", ActionNone,
			true, v1.ReasonCompleted, "done"},
		"failed": {[]func(*View){job(jobs.Failed, "no table"), cancel}, "", ActionNone, true, v1.ReasonFailed,
			"no table"},
		"the kubelet has stopped it": {[]func(*View){job(jobs.Late, "half")}, "", ActionNone, true,
			v1.ReasonDeadlineExceeded, "last: half"},
		"cancelled while it runs, late": {[]func(*View){job(jobs.Running, ""), cancel, late}, "", ActionStop, true,
			v1.ReasonCancelled, ""},
		"cancelled before": {[]func(*View){cancel}, "x", ActionNone, true, v1.ReasonCancelled, ""},
		"cancelled while its Job goes": {[]func(*View){job(jobs.Ending, ""), cancel}, "", ActionNone, true,
			v1.ReasonCancelled, ""},
		"somebody else's Job is not stopped": {[]func(*View){job(jobs.Running, ""), foreign, cancel}, "", ActionNone,
			true, v1.ReasonCancelled, ""},
		"late while it runs": {[]func(*View){job(jobs.Running, "half"), late}, "", ActionStop, true,
			v1.ReasonDeadlineExceeded, "last: half"},
		"late while it waits": {[]func(*View){late}, "no bucket", ActionNone, true, v1.ReasonDeadlineExceeded,
			"last: no bucket"},
		"late, and it never began": {[]func(*View){late}, "", ActionNone, true, v1.ReasonDeadlineExceeded,
			"last: it had not begun"},
	} {
		t.Run(name, func(t *testing.T) {
			v := View{Now: now, Deadline: now.Add(time.Hour)}
			for _, modify := range c.view {
				modify(&v)
			}
			d := v.Decide(func() Decision { return Over(v1.ReasonCompleted, "done") }, func() Decision {
				if d := v.Begun(); d.Reason != "" || c.waits == "" {
					return d
				}
				return Wait(v1.ReasonWaiting, c.waits)
			})
			if d.Action != c.action || d.Over != c.over || d.Reason != c.reason ||
				!strings.Contains(d.Message, c.words) {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

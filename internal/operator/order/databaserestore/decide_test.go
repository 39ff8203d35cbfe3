package databaserestore

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	soon, before := now.Add(time.Hour), now.Add(-time.Second)
	for name, c := range map[string]struct {
		view   view
		want   Decision
		reason string
		words  string
	}{
		"it may begin": {view{}, Decision{Action: ActionCreate}, v1.ReasonRunning, "started"},
		"no SampleDB":  {view{notFound: true}, Decision{}, v1.ReasonSampleDBNotFound, ""},
		"no archive":   {view{notReady: "no archive"}, Decision{}, v1.ReasonArchiveNotReady, "no archive"},
		"no such backup": {
			view{noSource: "no DatabaseBackup b"}, Decision{}, v1.ReasonRestoreSourceNotFound, "no DatabaseBackup b",
		},
		"of another version": {
			view{impossible: "ran PostgreSQL 15"}, Decision{Over: true}, v1.ReasonFailed, "ran PostgreSQL 15",
		},
		"it runs": {
			view{notFound: true, job: jobView{state: jobs.Running, message: "replays WAL"}}, Decision{},
			v1.ReasonRunning, "replays WAL",
		},
		"its Job was deleted": {view{job: jobView{state: jobs.Ending}}, Decision{}, v1.ReasonWaiting, ""},
		"the Job is somebody else's": {
			view{job: jobView{state: jobs.Complete, foreign: true}}, Decision{}, v1.ReasonBackupNameTaken, "",
		},
		"it is there": {
			view{cancel: true, job: jobView{state: jobs.Complete, message: "orders"}}, Decision{Over: true},
			v1.ReasonCompleted, "orders",
		},
		"it was refused": {
			view{job: jobView{state: jobs.Failed, message: "no such table"}}, Decision{Over: true},
			v1.ReasonFailed, "no such table",
		},
		"it is cancelled while it runs": {
			view{cancel: true, job: jobView{state: jobs.Running}}, Decision{Action: ActionStop, Over: true},
			v1.ReasonCancelled, "",
		},
		"it is cancelled before": {view{cancel: true, notFound: true}, Decision{Over: true}, v1.ReasonCancelled, ""},
		"it takes too long": {
			view{deadline: before, job: jobView{state: jobs.Running, message: "replays WAL"}},
			Decision{Action: ActionStop, Over: true}, v1.ReasonDeadlineExceeded, "replays WAL",
		},
		"the kubelet has stopped it": {
			view{job: jobView{state: jobs.Late, message: "replays WAL"}}, Decision{Over: true},
			v1.ReasonDeadlineExceeded, "replays WAL",
		},
		"somebody else's Job is not stopped": {
			view{cancel: true, job: jobView{state: jobs.Running, foreign: true}}, Decision{Over: true},
			v1.ReasonCancelled, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.view
			v.now = now
			if v.deadline.IsZero() {
				v.deadline = soon
			}
			if c.want.Action == "" {
				c.want.Action = ActionNone
			}
			got := decide(v)
			if got.Action != c.want.Action || got.Over != c.want.Over || got.Reason != c.reason ||
				!strings.Contains(got.Message, c.words) {
				t.Errorf("decided %+v", got)
			}
		})
	}
}

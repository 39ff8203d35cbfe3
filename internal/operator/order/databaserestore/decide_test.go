package databaserestore

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// What every kind of order does is tested in package order.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	running := order.Job{State: jobs.Running, Message: "replays WAL"}
	for name, c := range map[string]struct {
		view   view
		action order.Action
		over   bool
		reason string
		words  string
	}{
		"it may begin": {view{}, order.ActionCreate, false, v1.ReasonRunning, "started"},
		"no SampleDB":  {view{notFound: true}, order.ActionNone, false, v1.ReasonSampleDBNotFound, ""},
		"no archive":   {view{notReady: "no archive"}, order.ActionNone, false, v1.ReasonArchiveNotReady, "no archive"},
		"no such backup": {view{noSource: "no DatabaseBackup b"}, order.ActionNone, false,
			v1.ReasonRestoreSourceNotFound, "no DatabaseBackup b"},
		"of another version": {view{impossible: "ran PostgreSQL 15"}, order.ActionNone, true, v1.ReasonFailed,
			"ran PostgreSQL 15"},
		"it runs, and its SampleDB is gone": {view{View: order.View{Job: running}, notFound: true}, order.ActionNone,
			false, v1.ReasonRunning, "replays WAL"},
		"it is there": {view{View: order.View{Job: order.Job{State: jobs.Complete, Message: "orders"}}},
			order.ActionNone, true, v1.ReasonCompleted, "orders"},
		"cancelled before": {view{View: order.View{Cancel: true}, notFound: true}, order.ActionNone, true,
			v1.ReasonCancelled, ""},
		"late while there is no such backup": {view{View: order.View{Deadline: now}, noSource: "no b"},
			order.ActionNone, true, v1.ReasonDeadlineExceeded, "last: no b"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.view
			v.Now = now
			if v.Deadline.IsZero() {
				v.Deadline = now.Add(time.Hour)
			}
			d := decide(v)
			if d.Action != c.action || d.Over != c.over || d.Reason != c.reason ||
				!strings.Contains(d.Message, c.words) {
				t.Errorf("decided %+v", d)
			}
		})
	}
}

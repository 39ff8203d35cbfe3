package databasebackup

import (
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	with := func(modify ...func(*view)) view {
		v := view{View: order.View{Now: now, Deadline: now.Add(time.Hour)}, db: dbView{found: true}}
		for _, m := range modify {
			m(&v)
		}
		return v
	}
	job := func(state jobs.State) func(*view) {
		return func(v *view) { v.Job = order.Job{State: state, Message: "words"} }
	}
	known := func(v *view) { v.known = true }
	foreign := func(v *view) { v.Job = order.Job{State: jobs.Running, Foreign: true, Message: "words"} }
	late := func(v *view) { v.Now = v.Deadline }
	cancel := func(v *view) { v.Cancel = true }
	noDB := func(v *view) { v.db.found = false }
	notReady := func(v *view) { v.db.notReady = "no archive" }
	before := func(v *view) { v.before = "waits for x" }
	for name, c := range map[string]struct {
		view   view
		action order.Action
		over   bool
		reason string
	}{
		"it begins":         {with(), order.ActionCreate, false, v1.ReasonRunning},
		"no SampleDB yet":   {with(noDB), order.ActionNone, false, v1.ReasonSampleDBNotFound},
		"no archive yet":    {with(notReady), order.ActionNone, false, v1.ReasonArchiveNotReady},
		"another one first": {with(before), order.ActionNone, false, v1.ReasonWaiting},
		"it runs":           {with(job(jobs.Running)), order.ActionNone, false, v1.ReasonRunning},
		"it runs, though its SampleDB is gone": {with(job(jobs.Running), noDB), order.ActionNone, false,
			v1.ReasonRunning},
		"it runs, though the archive does not work": {
			with(job(jobs.Running), notReady), order.ActionNone, false, v1.ReasonRunning,
		},
		"its name is taken":             {with(foreign), order.ActionNone, false, v1.ReasonBackupNameTaken},
		"a former Job of the name goes": {with(job(jobs.Ending)), order.ActionNone, false, v1.ReasonWaiting},
		"complete":                      {with(job(jobs.Complete), known), order.ActionNone, true, v1.ReasonCompleted},
		"complete, though cancelled": {with(job(jobs.Complete), known, cancel), order.ActionNone, true,
			v1.ReasonCompleted},
		"complete, though late": {with(job(jobs.Complete), known, late), order.ActionNone, true,
			v1.ReasonCompleted},
		"its result is lost":                {with(job(jobs.Complete)), order.ActionNone, true, v1.ReasonFailed},
		"failed":                            {with(job(jobs.Failed)), order.ActionNone, true, v1.ReasonFailed},
		"stopped by the Job's own deadline": {with(job(jobs.Late)), order.ActionNone, true, v1.ReasonDeadlineExceeded},
		"cancelled before it began":         {with(cancel), order.ActionNone, true, v1.ReasonCancelled},
		"cancelled while it runs": {with(job(jobs.Running), cancel), order.ActionStop, true,
			v1.ReasonCancelled},
		"cancelled: somebody else's Job is left alone": {
			with(foreign, cancel), order.ActionNone, true, v1.ReasonCancelled,
		},
		"cancelled while its Job goes": {with(job(jobs.Ending), cancel), order.ActionNone, true, v1.ReasonCancelled},
		"the deadline passes while it runs": {
			with(job(jobs.Running), late), order.ActionStop, true, v1.ReasonDeadlineExceeded,
		},
		"the deadline passes while it waits": {with(before, late), order.ActionNone, true, v1.ReasonDeadlineExceeded},
		"the deadline passes while there is no SampleDB": {
			with(noDB, late), order.ActionNone, true, v1.ReasonDeadlineExceeded,
		},
		"the deadline passes: somebody's Job stays": {
			with(foreign, late), order.ActionNone, true, v1.ReasonDeadlineExceeded,
		},
		"cancelled after the deadline is still cancelled": {
			with(job(jobs.Running), late, cancel), order.ActionStop, true, v1.ReasonCancelled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(c.view)
			if got.Action != c.action || got.Over != c.over || got.Reason != c.reason {
				t.Errorf("got %+v, want %s, over %v, for %s", got, c.action, c.over, c.reason)
			}
			if got.Message == "" {
				t.Error("it does not say why")
			}
		})
	}
}

func TestWhatWasWaitedForIsInTheMessageOfADeadline(t *testing.T) {
	v := view{View: order.View{Now: time.Unix(100, 0), Deadline: time.Unix(99, 0)}, db: dbView{
		found: true, notReady: "the archive does not work: no bucket",
	}}
	if got := decide(v).Message; got != "it took longer than spec.deadline; last: "+
		"the archive does not work: no bucket" {
		t.Errorf("it says %q", got)
	}
}

func TestSizeIsForPeople(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1023: "1023", 1 << 20: "1Mi", 1<<30 + 5: "1Gi", 25<<20 + 77: "25Mi",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d is %s, want %s", bytes, got, want)
		}
	}
}

package databasebackup

import (
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	with := func(modify ...func(*view)) view {
		v := view{now: now, deadline: now.Add(time.Hour), db: dbView{found: true}}
		for _, m := range modify {
			m(&v)
		}
		return v
	}
	job := func(state jobState) func(*view) { return func(v *view) { v.job = jobView{state, "words"} } }
	late := func(v *view) { v.now = v.deadline }
	cancel := func(v *view) { v.cancel = true }
	noDB := func(v *view) { v.db.found = false }
	notReady := func(v *view) { v.db.notReady = "no archive" }
	before := func(v *view) { v.before = "waits for x" }
	for name, c := range map[string]struct {
		view   view
		action Action
		over   bool
		reason string
	}{
		"it begins":                            {with(), ActionCreate, false, v1.ReasonRunning},
		"no SampleDB yet":                      {with(noDB), ActionNone, false, v1.ReasonSampleDBNotFound},
		"no archive yet":                       {with(notReady), ActionNone, false, v1.ReasonArchiveNotReady},
		"another one first":                    {with(before), ActionNone, false, v1.ReasonWaiting},
		"it runs":                              {with(job(jobRunning)), ActionNone, false, v1.ReasonRunning},
		"it runs, though its SampleDB is gone": {with(job(jobRunning), noDB), ActionNone, false, v1.ReasonRunning},
		"it runs, though the archive does not work": {
			with(job(jobRunning), notReady), ActionNone, false, v1.ReasonRunning,
		},
		"its name is taken":                 {with(job(jobForeign)), ActionNone, false, v1.ReasonBackupNameTaken},
		"a former Job of the name goes":     {with(job(jobEnding)), ActionNone, false, v1.ReasonWaiting},
		"complete":                          {with(job(jobComplete)), ActionNone, true, v1.ReasonCompleted},
		"complete, though cancelled":        {with(job(jobComplete), cancel), ActionNone, true, v1.ReasonCompleted},
		"complete, though late":             {with(job(jobComplete), late), ActionNone, true, v1.ReasonCompleted},
		"failed":                            {with(job(jobFailed)), ActionNone, true, v1.ReasonFailed},
		"stopped by the Job's own deadline": {with(job(jobLate)), ActionNone, true, v1.ReasonDeadlineExceeded},
		"cancelled before it began":         {with(cancel), ActionNone, true, v1.ReasonCancelled},
		"cancelled while it runs":           {with(job(jobRunning), cancel), ActionStop, true, v1.ReasonCancelled},
		"cancelled: somebody else's Job is left alone": {
			with(job(jobForeign), cancel), ActionNone, true, v1.ReasonCancelled,
		},
		"cancelled while its Job goes": {with(job(jobEnding), cancel), ActionNone, true, v1.ReasonCancelled},
		"the deadline passes while it runs": {
			with(job(jobRunning), late), ActionStop, true, v1.ReasonDeadlineExceeded,
		},
		"the deadline passes while it waits": {with(before, late), ActionNone, true, v1.ReasonDeadlineExceeded},
		"the deadline passes while there is no SampleDB": {
			with(noDB, late), ActionNone, true, v1.ReasonDeadlineExceeded,
		},
		"the deadline passes: somebody's Job stays": {
			with(job(jobForeign), late), ActionNone, true, v1.ReasonDeadlineExceeded,
		},
		"cancelled after the deadline is still cancelled": {
			with(job(jobRunning), late, cancel), ActionStop, true, v1.ReasonCancelled,
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
	v := view{now: time.Unix(100, 0), deadline: time.Unix(99, 0), db: dbView{
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

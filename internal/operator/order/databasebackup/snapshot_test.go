package databasebackup

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

const theSession, formerSession = "20261120T031500Z-3f2a", "20261120T031000Z-0001"

// Names of VolumeSnapshots of the backup "b".
const ofSession, ofFormer = "b-20261120t031500z-3f2a", "b-20261120t031000z-0001"

func TestWhatIsDoneAboutSnapshots(t *testing.T) {
	running := order.Decision{Reason: v1.ReasonRunning}
	completed := order.Decision{Reason: v1.ReasonCompleted, Over: true}
	failed := order.Decision{Reason: v1.ReasonFailed, Over: true}
	for name, c := range map[string]struct {
		view snapshotView
		d    order.Decision
		want snapshotSteps
	}{
		"no session yet": {snapshotView{}, running, snapshotSteps{}},
		"a session waits": {
			snapshotView{session: theSession}, running, snapshotSteps{create: true},
		},
		"it is being cut": {
			snapshotView{session: theSession, all: []snapshotSeen{{name: ofSession}}}, running, snapshotSteps{},
		},
		"it is cut": {
			snapshotView{session: theSession, all: []snapshotSeen{{name: ofSession, cut: true}}}, running,
			snapshotSteps{tell: true},
		},
		"it is being deleted by somebody: the session waits for nothing that counts": {
			snapshotView{session: theSession, all: []snapshotSeen{{name: ofSession, cut: true, ending: true}}}, running,
			snapshotSteps{create: true},
		},
		"what was cut for a former session does not count": {
			snapshotView{session: theSession, all: []snapshotSeen{{name: ofFormer, cut: true, ready: true}}}, running,
			snapshotSteps{create: true, remove: []string{ofFormer}},
		},
		"a Pod that does not answer may still wait": {
			snapshotView{all: []snapshotSeen{{name: ofSession, cut: true}}}, running, snapshotSteps{},
		},
		"the session has ended well": {
			snapshotView{done: theSession, all: []snapshotSeen{{name: ofSession, cut: true}, {name: ofFormer}}},
			running,
			snapshotSteps{remove: []string{ofFormer}},
		},
		"complete": {
			snapshotView{done: theSession, all: []snapshotSeen{{name: ofSession, cut: true, ready: true}}}, completed,
			snapshotSteps{},
		},
		"failed: nothing stays": {
			snapshotView{session: theSession, all: []snapshotSeen{{name: ofSession, cut: true}, {name: ofFormer}}},
			failed, snapshotSteps{remove: []string{ofSession, ofFormer}},
		},
		"failed after its session had ended well: nothing stays": {
			snapshotView{done: theSession, all: []snapshotSeen{{name: ofSession, cut: true}}},
			failed, snapshotSteps{remove: []string{ofSession}},
		},
	} {
		got := c.view.steps("b", c.d)
		if got.create != c.want.create || got.tell != c.want.tell || !slices.Equal(got.remove, c.want.remove) {
			t.Errorf("%s: %+v, expected %+v", name, got, c.want)
		}
	}
}

func TestWhenABackupBySnapshotIsOver(t *testing.T) {
	now := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	with := func(modify ...func(*view)) view {
		v := view{View: order.View{Now: now, Deadline: now.Add(time.Hour)}, name: "b", db: dbView{found: true},
			snapshot: &snapshotView{
				api: true, done: theSession, all: []snapshotSeen{{name: ofSession, cut: true, ready: true}},
			}}
		v.Job = order.Job{State: jobs.Complete, Message: "words"}
		for _, m := range modify {
			m(&v)
		}
		return v
	}
	notReady := func(v *view) { v.snapshot.all[0].ready = false }
	problem := func(v *view) { v.snapshot.all[0].problem = "no class for the driver" }
	late := func(v *view) { v.Now = v.Deadline }
	gone := func(v *view) { v.snapshot.all = nil }
	noAPI := func(v *view) { v.snapshot.api, v.snapshot.all = false, nil }
	job := func(state jobs.State) func(*view) {
		return func(v *view) { v.Job.State, v.snapshot.done = state, "" }
	}
	for name, c := range map[string]struct {
		view   view
		over   bool
		reason string
		words  string
	}{
		"it can be used": {with(), true, v1.ReasonCompleted, "words"},
		"it is cut, and can't be used yet": {
			with(notReady), false, v1.ReasonRunning, "until it can be used",
		},
		"the driver complains": {
			with(notReady, problem), false, v1.ReasonRunning, "no class for",
		},
		"it can't be used in time": {
			with(notReady, problem, late), true, v1.ReasonDeadlineExceeded, "no class",
		},
		"it can be used, though late": {with(late), true, v1.ReasonCompleted, "words"},
		"somebody has deleted it":     {with(gone), true, v1.ReasonFailed, "is gone"},
		"nobody knows which it is": {
			with(job(jobs.Complete)), true, v1.ReasonFailed, "which snapshot",
		},
		"the API is away when the Pod has ended": {
			with(noAPI), false, v1.ReasonRunning, "no VolumeSnapshots",
		},
		"the API is missing": {
			with(job(jobs.None), noAPI), false, v1.ReasonSnapshotAPIMissing, "CRDs",
		},
		"the API is missing until the deadline": {
			with(job(jobs.None), noAPI, late), true, v1.ReasonDeadlineExceeded, "CRDs",
		},
		"it begins": {
			with(job(jobs.None), gone), false, v1.ReasonRunning, "Pod",
		},
		"it waits for the cut, and it is told why": {
			with(job(jobs.Running), problem), false, v1.ReasonRunning, "no class",
		},
		"it has failed, and it is told why": {
			with(job(jobs.Failed), problem), true, v1.ReasonFailed, "no class",
		},
	} {
		got := decide(c.view)
		if got.Over != c.over || got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
			t.Errorf("%s: %+v, expected over %v for %s with %q", name, got, c.over, c.reason, c.words)
		}
	}
}

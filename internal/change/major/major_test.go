package major

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/change/window"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// readyToClose is a view in which all is prepared, and clients may be sent away.
func readyToClose() MajorView {
	done := Work{Started: true, Done: true}
	return MajorView{
		Now: noon, From: 17, To: 18, Phase: PhasePreparing, Since: noon, Ready: true,
		Pull: done, Check: done, Backup: done, Rehearsal: done, Job: Work{Started: true}, Waits: true,
		Instance: "db-0", Primary: "db-0",
	}
}

func TestDecideMajor(t *testing.T) {
	night := window.Window{Hour: 3, Length: time.Hour, Location: time.UTC}
	for name, c := range map[string]struct {
		change func(*MajorView)
		want   Phase
		says   string
	}{
		"not ready": {func(v *MajorView) { v.Ready = false }, PhaseWaiting, "Ready"},
		"something else is under way": {func(v *MajorView) { v.Busy = "a restore is under way" }, PhaseWaiting,
			"restore"},
		"the image is being pulled": {func(v *MajorView) { v.Pull = Work{Started: true} }, PhasePulling, "image"},
		"a node can't get it": {func(v *MajorView) { v.Pull = Work{Failed: "no such image"} }, PhaseFailed,
			"no such image"},
		"the check has found something": {func(v *MajorView) { v.Check = Work{Failed: "a prepared transaction"} },
			PhaseFailed, "PostgreSQL 17 runs as before"},
		"the backup is being taken": {func(v *MajorView) { v.Backup = Work{Started: true, Says: "30 %"} },
			PhaseBackingUp, "30 %"},
		"it is rehearsed": {func(v *MajorView) { v.Rehearsal = Work{Started: true, Says: "replays WAL: 30 %"} },
			PhaseRehearsing, "30 %"},
		"the rehearsal has found something": {func(v *MajorView) {
			v.Rehearsal = RehearsalDecision{Outcome: OutcomeProblems, Says: "an index is damaged"}.Work()
		}, PhaseFailed, "because the rehearsal on a copy has found: an index is damaged"},
		"the rehearsal could not be done": {func(v *MajorView) {
			v.Rehearsal = RehearsalDecision{Outcome: OutcomeNotDone, Says: "no room"}.Work()
		}, PhaseFailed, "could not be rehearsed: no room"},
		"a problem is told only after the backup": {func(v *MajorView) {
			v.Backup, v.Rehearsal = Work{Started: true}, Work{Failed: "an index is damaged"}
		}, PhaseBackingUp, "backup"},
		"clients go, whatever the rehearsal says now": {func(v *MajorView) {
			v.Phase, v.Rehearsal = PhaseClosing, Work{}
		}, PhaseClosing, "end"},
		"the Pod starts":      {func(v *MajorView) { v.Waits = false }, PhasePreparing, "Pod"},
		"another leads":       {func(v *MajorView) { v.Primary = "db-1" }, PhasePreparing, "db-1"},
		"outside the window":  {func(v *MajorView) { v.Window = &night }, PhasePreparing, "2026-11-21T03:00:00Z"},
		"asked not to wait":   {func(v *MajorView) { v.Window, v.Asked = &night, true }, PhaseClosing, "No client"},
		"all is prepared":     {func(*MajorView) {}, PhaseClosing, "No client"},
		"clients go":          {func(v *MajorView) { v.Phase = PhaseClosing }, PhaseClosing, "end"},
		"no client is there":  {func(v *MajorView) { v.Phase, v.Closed = PhaseClosing, true }, PhaseUpgrading, "stop"},
		"another leads there": {func(v *MajorView) { v.Phase, v.Primary = PhaseClosing, "db-1" }, PhaseFailed, "db-1"},
		"nobody leads there":  {func(v *MajorView) { v.Phase, v.Primary = PhaseClosing, "" }, PhaseClosing, "end"},
		"clients don't go": {func(v *MajorView) { v.Phase, v.Now = PhaseClosing, noon.Add(time.Hour) }, PhaseFailed,
			"2m0s"},
		"an instance does not stop": {func(v *MajorView) { v.Phase, v.Now = PhaseUpgrading, noon.Add(time.Hour) },
			PhaseFailed, "stopped"},
		"the data is being upgraded": {func(v *MajorView) { v.Phase, v.Stopped = PhaseUpgrading, true }, PhaseUpgrading,
			"being upgraded"},
		"that takes long": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Now = PhaseUpgrading, true, noon.Add(5*time.Hour)
		}, PhaseUpgrading, "being upgraded"},
		"its Pod answers, whatever Kubernetes says of it": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Now, v.Job.Lost = PhaseUpgrading, true, noon.Add(5*time.Hour), "no node"
		}, PhaseUpgrading, "being upgraded"},
		"its Pod has not answered for a moment": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Job.Silent = PhaseUpgrading, true, AnswerPatience-time.Second
		}, PhaseUpgrading, "being upgraded"},
		"its Pod does not answer any more": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Job.Silent = PhaseUpgrading, true, AnswerPatience
		}, PhaseFailed, "volume of db-0 has not answered for 10m0s"},
		"its node is lost for a moment": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Job.Lost, v.Job.Silent = PhaseUpgrading, true, "no node", LostPatience-time.Second
		}, PhaseUpgrading, "being upgraded"},
		"its node is lost": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Job.Lost, v.Job.Silent = PhaseUpgrading, true, "no node", LostPatience
		}, PhaseFailed, "(no node)"},
		"its node is lost while an instance stops": {func(v *MajorView) {
			v.Phase, v.Job.Lost, v.Job.Silent = PhaseUpgrading, "no node", time.Hour
		}, PhaseUpgrading, "stop"},
		"the data can't be upgraded": {func(v *MajorView) { v.Phase, v.Job = PhaseUpgrading, Work{Failed: "no room"} },
			PhaseFailed, "no room"},
		"the Job is gone": {func(v *MajorView) { v.Phase, v.Stopped, v.Job = PhaseUpgrading, true, Work{} },
			PhaseFailed, "gone"},
		"the data is upgraded": {func(v *MajorView) {
			v.Phase, v.Stopped, v.Job = PhaseUpgrading, true, Work{Done: true}
		}, PhaseStarting, "start"},
		"it is upgraded while an instance runs": {func(v *MajorView) {
			v.Phase, v.Job = PhaseUpgrading, Work{Done: true}
		}, PhaseUpgrading, "stop"},
		"the instances start": {func(v *MajorView) { v.Phase, v.TakenOver = PhaseStarting, true }, PhaseStarting,
			"start"},
		"the status was late": {func(v *MajorView) { v.Phase, v.TakenOver = PhaseUpgrading, true }, PhaseStarting,
			"start"},
		"it does not start": {func(v *MajorView) {
			v.Phase, v.TakenOver, v.Now = PhaseStarting, true, noon.Add(time.Hour)
			v.Trouble, v.Back = "out of shared memory", "restore it"
		}, PhaseStarting, "has not taken writes on db-0 for 5m0s: out of shared memory. No client was let in " +
			"since. Mend what keeps it from starting, and it goes on by itself; or go back by hand: restore it"},
		"it serves": {func(v *MajorView) {
			v.Phase, v.TakenOver, v.Serves = PhaseStarting, true, true
		}, PhaseUpgraded, "18"},
		"it has ended": {func(v *MajorView) { v.Phase, v.TakenOver = PhaseUpgraded, true }, PhaseUpgraded, ""},
		"it failed": {func(v *MajorView) { v.Phase, v.Tried, v.Failure = PhaseFailed, true, "no room" }, PhaseFailed,
			"because no room"},
		"it is tried again": {func(v *MajorView) { v.Phase, v.Failure = PhaseFailed, "no room" }, PhaseClosing, ""},
	} {
		v := readyToClose()
		c.change(&v)
		if got := DecideMajor(v); got.Phase != c.want || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %+v, expected %s with %q", name, got, c.want, c.says)
		}
	}
}

// Before the instances are to run the new data every failure leads back, whatever else is known; after that none does.
func TestAFailureLeadsBackOnlyBeforeTheTakeOver(t *testing.T) {
	for _, phase := range []Phase{
		PhaseWaiting, PhasePulling, PhaseChecking, PhasePreparing, PhaseClosing, PhaseUpgrading,
	} {
		v := readyToClose()
		v.Phase, v.Job = phase, Work{Failed: "oops"}
		if got := DecideMajor(v); got.Phase != PhaseFailed || got.Failure != "oops" {
			t.Errorf("%s: %+v", phase, got)
		}
		v.TakenOver = true
		if got := DecideMajor(v); got.Phase != PhaseStarting {
			t.Errorf("%s, taken over: %+v", phase, got)
		}
	}
}

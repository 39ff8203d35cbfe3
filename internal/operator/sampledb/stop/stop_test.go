package stop

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

// toProve is a view of a stop whose last client has gone, and of which all have all.
func toProve() stopView {
	at := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	return stopView{
		now: at, since: at, wanted: true, step: v1.StopProving, data: true, pods: 3, primary: "db-0", closed: true,
		allClosed: true, proves: "db-0", proved: "0/5000148", end: "0/5000148", archived: true,
	}
}

func TestDecideStop(t *testing.T) {
	late := func(v *stopView) { v.now = v.since.Add(stopPatience + time.Second) }
	for name, c := range map[string]struct {
		change       func(*stopView)
		step, reason string
		says         string
	}{
		"it is to serve, and does": {func(v *stopView) { v.wanted, v.step = false, "" }, "", stopServes, ""},
		"a backup is being taken": {func(v *stopView) { v.step, v.busy = "", "Job db-1-backup" }, v1.StopWaiting,
			stopBusy, "Job db-1-backup"},
		"that has ended": {func(v *stopView) { v.step = v1.StopWaiting }, v1.StopClosing, stopBegins, "no client"},
		"nothing runs, and nothing ever has": {func(v *stopView) { v.step, v.pods, v.data = "", 0, false },
			v1.StopStopped, stopNothing, "made when it is started"},
		"nothing runs": {func(v *stopView) { v.step, v.pods = "", 0 }, v1.StopStopped, stopStopped,
			"is stopped"},
		"it is being created": {func(v *stopView) { v.step, v.data = "", false }, v1.StopStopping, stopNoData, "Pods"},
		"what is busy later does not take it back": {func(v *stopView) { v.busy = "Job x" }, v1.StopStopping,
			stopComplete, "Pods"},

		"clients are there": {func(v *stopView) { v.step, v.allClosed = v1.StopClosing, false }, v1.StopClosing,
			stopSessions, "sessions"},
		"no primary is there": {func(v *stopView) { v.step, v.allClosed, v.primary = v1.StopClosing, false, "" },
			v1.StopClosing, stopNoPrimary, "waits for a primary"},
		"the last client has gone": {func(v *stopView) { v.step = v1.StopClosing }, v1.StopProving, stopClosed, "gone"},
		"a standby does not say so for long": {func(v *stopView) {
			v.step, v.allClosed = v1.StopClosing, false
			late(v)
		}, v1.StopProving, stopClosed, "from the primary db-0"},
		"the primary does not say so for long": {func(v *stopView) {
			v.step, v.allClosed, v.closed = v1.StopClosing, false, false
			late(v)
		}, v1.StopStopping, stopUnended, "not every session"},
		"no primary comes": {func(v *stopView) {
			v.step, v.allClosed, v.primary, v.closed = v1.StopClosing, false, "", false
			late(v)
		}, v1.StopStopping, stopGivenUp, "no instance takes writes"},

		"all have all": {func(*stopView) {}, v1.StopStopping, stopComplete, "the Pods end"},
		"the archive lacks something": {func(v *stopView) { v.archived, v.archive = false, "it goes up to 0/5" },
			v1.StopProving, stopReceiving, "up to 0/5"},
		"a standby lacks something": {func(v *stopView) { v.behind = []string{"db-2"} }, v1.StopProving, stopReceiving,
			"db-2"},
		"the archive is away for long": {func(v *stopView) {
			v.archived, v.archive = false, "the archive does not take WAL now: timeout"
			late(v)
		}, v1.StopStopping, stopIncomplete, "timeout"},
		"a standby is away for long": {func(v *stopView) {
			v.behind = []string{"db-2"}
			late(v)
		}, v1.StopStopping, stopIncomplete, "db-2"},
		"another one has become primary": {func(v *stopView) { v.primary = "db-1" }, v1.StopClosing, stopAnother,
			"db-1"},
		"the end is another one": {func(v *stopView) { v.end = "0/5000200" }, v1.StopClosing, stopAnother,
			"db-0"},
		"a client was let in": {func(v *stopView) { v.closed = false }, v1.StopClosing, stopAnother, "db-0"},
		"the end is not known yet": {func(v *stopView) {
			v.proves, v.proved, v.end, v.archived, v.archive = "db-0", "", "", false, "not known"
		}, v1.StopProving, stopReceiving, "not known"},
		"the primary is gone, and nothing is lacking": {func(v *stopView) { v.primary, v.closed = "", false },
			v1.StopProving, stopNoPrimary, "waits for a primary"},

		"Pods end":       {func(v *stopView) { v.step = v1.StopStopping }, v1.StopStopping, stopPodsEnd, "3 Pods"},
		"all have ended": {func(v *stopView) { v.step, v.pods = v1.StopStopping, 0 }, v1.StopStopped, stopStopped, ""},
		"it is stopped": {func(v *stopView) { v.step, v.pods, v.primary = v1.StopStopped, 0, "" }, v1.StopStopped,
			stopStopped, ""},

		"it goes to sleep": {func(v *stopView) { v.step, v.sleeps = "", true }, v1.StopWaiting, stopHolds,
			"hold their clients"},
		"its poolers hold their clients": {func(v *stopView) {
			v.step, v.sleeps, v.held = v1.StopWaiting, true, true
		}, v1.StopClosing, stopBegins, ""},
		"it sleeps": {func(v *stopView) { v.step, v.sleeps, v.pods = v1.StopStopped, true, 0 }, v1.StopStopped,
			stopStopped, "sleeps"},

		"taken back while it waits": {func(v *stopView) { v.wanted, v.step = false, v1.StopWaiting }, "", stopTakenBack,
			""},
		"taken back when clients were away": {func(v *stopView) { v.wanted = false }, "", stopTakenBack, ""},
		"taken back while the Pods end": {func(v *stopView) { v.wanted, v.step = false, v1.StopStopping },
			v1.StopStarting, stopStarts, "start"},
		"started": {func(v *stopView) { v.wanted, v.step, v.pods, v.primary = false, v1.StopStopped, 0, "" },
			v1.StopStarting, stopStarts, "start"},
		"nobody is elected yet": {func(v *stopView) { v.wanted, v.step, v.primary = false, v1.StopStarting, "" },
			v1.StopStarting, stopElects, "no instance"},
		"one takes writes": {func(v *stopView) { v.wanted, v.step = false, v1.StopStarting }, "", stopStarted, "db-0"},
		"stopped again before that": {func(v *stopView) { v.step, v.primary = v1.StopStarting, "" }, v1.StopClosing,
			stopBegins, ""},
		"deleted while it is stopped": {func(v *stopView) {
			v.wanted, v.deleted, v.step, v.pods = false, true, v1.StopStopped, 0
		}, v1.StopStarting, stopForDeleted, "last backup"},
	} {
		t.Run(name, func(t *testing.T) {
			v := toProve()
			c.change(&v)
			d := decideStop(v)
			if d.step != c.step || d.reason != c.reason || !strings.Contains(d.message, c.says) {
				t.Errorf("it decides %+v, expected the step %q, %s with %q", d, c.step, c.reason, c.says)
			}
		})
	}
}

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

package stop

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/change/steps"
)

// toProve is a view of a stop whose last client has gone, and of which all have all.
func toProve() View {
	at := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	return View{
		Now: at, Since: at, Wanted: true, Step: Proving, Data: true, Pods: 3, Primary: "db-0", Closed: true,
		AllClosed: true, Proves: "db-0", Proved: "0/5000148", End: "0/5000148", Archived: true,
	}
}

func TestDecideStop(t *testing.T) {
	late := func(v *View) { v.Now = v.Since.Add(Patience + time.Second) }
	for name, c := range map[string]struct {
		change func(*View)
		step   steps.Phase
		reason steps.Why
		says   string
	}{
		"it is to serve, and does": {func(v *View) { v.Wanted, v.Step = false, "" }, "", WhyServes, ""},
		"a backup is being taken": {func(v *View) { v.Step, v.Busy = "", "Job db-1-backup" }, Waiting,
			WhyBusy, "Job db-1-backup"},
		"that has ended": {func(v *View) { v.Step = Waiting }, Closing, WhyBegins, "no client"},
		"nothing runs, and nothing ever has": {func(v *View) { v.Step, v.Pods, v.Data = "", 0, false },
			Stopped, WhyNothing, "made when it is started"},
		"nothing runs": {func(v *View) { v.Step, v.Pods = "", 0 }, Stopped, WhyStopped,
			"is stopped"},
		"it is being created": {func(v *View) { v.Step, v.Data = "", false }, Stopping, WhyNoData, "Pods"},
		"what is busy later does not take it back": {func(v *View) { v.Busy = "Job x" }, Stopping,
			WhyComplete, "Pods"},

		"clients are there": {func(v *View) { v.Step, v.AllClosed = Closing, false }, Closing,
			WhySessions, "sessions"},
		"no primary is there": {func(v *View) { v.Step, v.AllClosed, v.Primary = Closing, false, "" },
			Closing, WhyNoPrimary, "waits for a primary"},
		"the last client has gone": {func(v *View) { v.Step = Closing }, Proving, WhyClosed, "gone"},
		"a standby does not say so for long": {func(v *View) {
			v.Step, v.AllClosed = Closing, false
			late(v)
		}, Proving, WhyClosed, "from the primary db-0"},
		"the primary does not say so for long": {func(v *View) {
			v.Step, v.AllClosed, v.Closed = Closing, false, false
			late(v)
		}, Stopping, WhyUnended, "not every session"},
		"no primary comes": {func(v *View) {
			v.Step, v.AllClosed, v.Primary, v.Closed = Closing, false, "", false
			late(v)
		}, Stopping, WhyGivenUp, "no instance takes writes"},

		"all have all": {func(*View) {}, Stopping, WhyComplete, "the Pods end"},
		"the archive lacks something": {func(v *View) { v.Archived, v.Archive = false, "it goes up to 0/5" },
			Proving, WhyReceiving, "up to 0/5"},
		"a standby lacks something": {func(v *View) { v.Behind = []string{"db-2"} }, Proving, WhyReceiving,
			"db-2"},
		"the archive is away for long": {func(v *View) {
			v.Archived, v.Archive = false, "the archive does not take WAL Now: timeout"
			late(v)
		}, Stopping, WhyIncomplete, "timeout"},
		"a standby is away for long": {func(v *View) {
			v.Behind = []string{"db-2"}
			late(v)
		}, Stopping, WhyIncomplete, "db-2"},
		"another one has become primary": {func(v *View) { v.Primary = "db-1" }, Closing, WhyAnother,
			"db-1"},
		"the end is another one": {func(v *View) { v.End = "0/5000200" }, Closing, WhyAnother,
			"db-0"},
		"a client was let in": {func(v *View) { v.Closed = false }, Closing, WhyAnother, "db-0"},
		"the end is not known yet": {func(v *View) {
			v.Proves, v.Proved, v.End, v.Archived, v.Archive = "db-0", "", "", false, "not known"
		}, Proving, WhyReceiving, "not known"},
		"the primary is gone, and nothing is lacking": {func(v *View) { v.Primary, v.Closed = "", false },
			Proving, WhyNoPrimary, "waits for a primary"},

		"Pods end":       {func(v *View) { v.Step = Stopping }, Stopping, WhyPodsEnd, "3 Pods"},
		"all have ended": {func(v *View) { v.Step, v.Pods = Stopping, 0 }, Stopped, WhyStopped, ""},
		"it is stopped": {func(v *View) { v.Step, v.Pods, v.Primary = Stopped, 0, "" }, Stopped,
			WhyStopped, ""},

		"it goes to sleep": {func(v *View) { v.Step, v.Sleeps = "", true }, Waiting, WhyHolds,
			"hold their clients"},
		"its poolers hold their clients": {func(v *View) {
			v.Step, v.Sleeps, v.Held = Waiting, true, true
		}, Closing, WhyBegins, ""},
		"it sleeps": {func(v *View) { v.Step, v.Sleeps, v.Pods = Stopped, true, 0 }, Stopped,
			WhyStopped, "sleeps"},

		"taken back while it waits": {func(v *View) { v.Wanted, v.Step = false, Waiting }, "", WhyTakenBack,
			""},
		"taken back when clients were away": {func(v *View) { v.Wanted = false }, "", WhyTakenBack, ""},
		"taken back while the Pods end": {func(v *View) { v.Wanted, v.Step = false, Stopping },
			Starting, WhyStarts, "start"},
		"started": {func(v *View) { v.Wanted, v.Step, v.Pods, v.Primary = false, Stopped, 0, "" },
			Starting, WhyStarts, "start"},
		"nobody is elected yet": {func(v *View) { v.Wanted, v.Step, v.Primary = false, Starting, "" },
			Starting, WhyElects, "no instance"},
		"one takes writes": {func(v *View) { v.Wanted, v.Step = false, Starting }, "", WhyStarted, "db-0"},
		"stopped again before that": {func(v *View) { v.Step, v.Primary = Starting, "" }, Closing,
			WhyBegins, ""},
		"deleted while it is stopped": {func(v *View) {
			v.Wanted, v.Deleted, v.Step, v.Pods = false, true, Stopped, 0
		}, Starting, WhyForDeleted, "last backup"},
	} {
		t.Run(name, func(t *testing.T) {
			v := toProve()
			c.change(&v)
			d := Decide(v)
			if d.Phase != c.step || d.Why != c.reason || !strings.Contains(d.Says, c.says) {
				t.Errorf("it decides %+v, expected the step %q, %s with %q", d, c.step, c.reason, c.says)
			}
		})
	}
}

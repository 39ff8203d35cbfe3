package stop

import (
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

// unused is a view of a database that nobody has used for long.
func unused() sleepView {
	at := time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)
	return sleepView{
		now: at, after: 30 * time.Minute, started: at.Add(-9 * time.Hour), ready: true, idle: time.Hour, poolers: 2,
	}
}

// sleeping is one that sleeps, and of which nothing else is known.
func sleeping(step string) func(*sleepView) {
	return func(v *sleepView) {
		v.asleep, v.since, v.step, v.held = v.now.Add(-8*time.Hour), v.now.Add(-time.Hour), step, true
		v.ready, v.idle, v.unknown = false, 0, []string{"db-0"}
	}
}

// begins is one that goes to sleep, and whose poolers are told to hold their clients.
func begins(v *sleepView) {
	v.asleep, v.since, v.step, v.ready = v.now.Add(-time.Second), v.now.Add(-time.Second), v1.StopWaiting, false
}

func TestDecideSleep(t *testing.T) {
	type changes []func(*sleepView)
	busy := func(v *sleepView) { v.busy = "Job db-1-backup" }
	waits := func(v *sleepView) { v.waiting = 1 }
	nobody := func(v *sleepView) { v.poolers = 0 }
	active := func(v *sleepView) { v.active = 1 }
	unready := func(v *sleepView) { v.ready = false }
	startsNow := func(v *sleepView) { v.started = v.now }
	late := func(v *sleepView) { v.since = v.now.Add(-11 * time.Second) }
	startedAsleep := func(v *sleepView) { v.started = v.asleep }
	holds := func(v *sleepView) { v.held = true }
	asleep := sleeping(v1.StopStopped)
	unheard := func(v *sleepView) { v.unheard, v.held = []string{"db-pool-a"}, false }
	used := func(v *sleepView) { v.idle = 29 * time.Minute }
	for name, c := range map[string]struct {
		change changes
		sleeps bool
		reason string
		says   string
		next   time.Duration // from now
	}{
		"nobody uses it":              {changes{}, true, sleepIdle, "for 1h0m0s", 0},
		"it is not to sleep":          {changes{func(v *sleepView) { v.after = 0 }}, false, sleepNotAsked, "", 0},
		"it is stopped by an order":   {changes{func(v *sleepView) { v.ordered = true }}, false, sleepOrdered, "", 0},
		"a client has done something": {changes{used}, false, sleepUsed, "", time.Minute},
		"an instance does not say so": {changes{func(v *sleepView) { v.unknown = []string{"db-2"} }}, false,
			sleepUnknown, "db-2", sleepAgain},
		"a backup is being taken":     {changes{busy}, false, sleepBusy, "Job db-1-backup", 0},
		"a pooler does not answer":    {changes{unheard}, false, sleepUnheard, "db-pool-a", sleepAgain},
		"there is no Pod of a pooler": {changes{nobody}, false, sleepUnheard, "", sleepAgain},
		"a client has a server":       {changes{active}, false, sleepSessions, "1 c", sleepAgain},
		"it is not ready":             {changes{unready}, false, sleepUnready, "", sleepAgain},
		"a client waits":              {changes{waits}, false, sleepWaits, "1 clients", 0},
		"it was started a moment ago": {changes{func(v *sleepView) { v.started = v.now.Add(-time.Minute) }}, false,
			sleepUsed, "", 29 * time.Minute},
		"it is kept awake": {changes{func(v *sleepView) { v.started = v.now.Add(time.Hour) }}, false, sleepKept,
			"2026-11-20T21:00:00Z", time.Hour},
		"it is about to be stopped by an order": {changes{func(v *sleepView) { v.step = v1.StopWaiting }}, false,
			sleepStarts, "", 0},

		"the poolers are told to hold": {changes{begins}, true, sleepIdle, "", 0},
		"they hold":                    {changes{begins, holds}, true, sleepIdle, "", 0},
		"a client comes meanwhile":     {changes{begins, waits}, false, sleepWaits, "", 0},
		"one does something meanwhile": {changes{begins, used}, false, sleepUsed, "", time.Minute},
		"a backup begins meanwhile":    {changes{begins, busy}, false, sleepBusy, "", 0},
		"a pooler is silent meanwhile": {changes{begins, unheard}, false, sleepUnheard, "", sleepAgain},
		"an instance is, meanwhile": {changes{begins, sleeping(v1.StopWaiting)}, false, sleepUnknown, "",
			sleepAgain},
		"somebody starts it meanwhile": {changes{begins, startsNow}, false, sleepKept, "", 0},
		"not all hold, for a moment":   {changes{begins, active}, true, sleepIdle, "", 0},
		"not all hold, for ten seconds": {changes{begins, late},
			false, sleepNotHeld, "", sleepAgain},

		"its clients are sent away":         {changes{sleeping(v1.StopClosing)}, true, sleepSleeps, "", 0},
		"it sleeps":                         {changes{asleep}, true, sleepSleeps, "", 0},
		"it sleeps, and a Job is there":     {changes{asleep, busy}, true, sleepSleeps, "", 0},
		"it sleeps, and a pooler is silent": {changes{asleep, unheard}, true, sleepSleeps, "", 0},
		"all its poolers are gone": {changes{asleep, nobody}, true,
			sleepSleeps, "", 0},
		"one is silent, and a client of another waits": {changes{asleep, unheard, waits}, false,
			sleepWaits, "", 0},
		"a client wakes it while the WAL is archived": {changes{sleeping(v1.StopProving), waits}, false, sleepWaits, "",
			0},
		"a client wakes it while the Pods end": {changes{sleeping(v1.StopStopping), waits}, false, sleepWaits, "",
			0},
		"somebody has started it": {changes{asleep, startedAsleep}, false,
			sleepKept, "started", 0},
		"it was started before it slept": {changes{asleep, func(v *sleepView) {
			v.started = v.asleep.Add(-time.Second)
		}}, true, sleepSleeps, "", 0},
		"it is not to sleep any more": {changes{asleep, func(v *sleepView) { v.after = 0 }}, false,
			sleepNotAsked, "", 0},
		"a window opens while it sleeps": {changes{asleep, waits, func(v *sleepView) {
			v.ordered = true
		}}, false, sleepOrdered, "", 0},
		"a window has closed": {changes{asleep, func(v *sleepView) { v.asleep = time.Time{} }}, false,
			sleepStarts, "", 0},
		"it wakes": {changes{sleeping(v1.StopStarting)}, false, sleepStarts, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := unused()
			for _, change := range c.change {
				change(&v)
			}
			d := decideSleep(v)
			if d.sleeps != c.sleeps || d.reason != c.reason || !strings.Contains(d.message, c.says) {
				t.Errorf("it decides %+v, want sleep %t, %s with %q", d, c.sleeps, c.reason, c.says)
			}
			if (c.next == 0) != d.next.IsZero() || c.next > 0 && !d.next.Equal(v.now.Add(c.next)) {
				t.Errorf("it is looked again at %s, want %s after %s", d.next, c.next, v.now)
			}
		})
	}
}

// What is not known never puts a database to sleep, and never wakes one: in no combination of all else.
func TestWhatIsNotKnownNeitherWakesNorPutsToSleep(t *testing.T) {
	all := []func(*sleepView){
		func(v *sleepView) { v.busy = "Job x" }, func(v *sleepView) { v.ready = false },
		func(v *sleepView) { v.idle = 0 }, func(v *sleepView) { v.held = true }, func(v *sleepView) { v.active = 3 },
		func(v *sleepView) { v.unknown = []string{"db-0"} }, func(v *sleepView) { v.unheard = []string{"db-pool-a"} },
		func(v *sleepView) { v.poolers = 0 },
	}
	for set := range 1 << len(all) {
		v := unused()
		for i, change := range all {
			if set&(1<<i) != 0 {
				change(&v)
			}
		}
		known := len(v.unknown)+len(v.unheard) == 0 && v.poolers > 0
		if d := decideSleep(v); d.sleeps && !known {
			t.Errorf("it goes to sleep though it is not known that nobody uses it: %+v: %+v", v, d)
		}
		for _, step := range []string{v1.StopClosing, v1.StopProving, v1.StopStopping, v1.StopStopped} {
			v.asleep, v.since, v.step = v.now.Add(-time.Hour), v.now.Add(-time.Hour), step
			if d := decideSleep(v); !d.sleeps {
				t.Errorf("in %s it wakes though nobody waits: %+v: %+v", step, v, d)
			}
			v.waiting = 1
			if d := decideSleep(v); d.sleeps {
				t.Errorf("in %s it sleeps though a client waits: %+v: %+v", step, v, d)
			}
			v.waiting = 0
		}
	}
}

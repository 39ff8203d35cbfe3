package archive

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestDecideWhenABackupIsDue(t *testing.T) {
	working := worldtest.At("2026-11-01 12:00:00")
	base := func(modify ...func(*backupPlan)) backupPlan {
		a := backupPlan{
			schedule: "0 3 * * *", now: worldtest.At("2026-11-20 12:00:00"), working: working,
			last: worldtest.At("2026-11-20 03:00:00"), complete: true,
		}
		for _, m := range modify {
			m(&a)
		}
		return a
	}
	last := func(text string) func(*backupPlan) { return func(a *backupPlan) { a.last = worldtest.At(text) } }
	now := func(text string) func(*backupPlan) { return func(a *backupPlan) { a.now = worldtest.At(text) } }
	every := func(schedule, zone string) func(*backupPlan) {
		return func(a *backupPlan) { a.schedule, a.zone = schedule, zone }
	}
	none := func(a *backupPlan) { a.last, a.complete = time.Time{}, false }
	busy := func(a *backupPlan) { a.busy = true }
	down := func(a *backupPlan) { a.working = time.Time{} }
	failed := func(a *backupPlan) { a.complete = false }
	gap := func(text string) func(*backupPlan) {
		return func(a *backupPlan) { a.anew, a.why = worldtest.At(text), "a gap" }
	}
	for name, c := range map[string]struct {
		plan      backupPlan
		due, next string
	}{
		"nothing before the next time":               {base(), "", "2026-11-21 03:00:00"},
		"the first one as soon as the archive works": {base(none), "2026-11-01 12:00:00", "2026-11-21 03:00:00"},
		"the first one without a schedule too":       {base(none, every("", "")), "2026-11-01 12:00:00", ""},
		"none while the archive does not work":       {base(none, down), "", "2026-11-21 03:00:00"},
		"none while one is under way": {
			base(last("2026-11-18 03:00:00"), busy), "", "2026-11-21 03:00:00",
		},
		"one that is due": {base(now("2026-11-21 03:00:00")), "2026-11-21 03:00:00", "2026-11-22 03:00:00"},
		"of many that were missed only the last": {
			base(last("2026-09-01 03:00:00")), "2026-11-20 03:00:00", "2026-11-21 03:00:00",
		},
		"of a schedule of every minute, missed for a year": {
			base(every("* * * * *", ""), last("2025-11-20 03:00:00")), "2026-11-20 12:00:00", "2026-11-20 12:01:00",
		},
		"of a schedule of every year": {
			base(every("@yearly", ""), last("2023-06-01 00:00:00")), "2026-01-01 00:00:00", "2027-01-01 00:00:00",
		},
		"in a time zone": {base(every("0 3 * * *", "Asia/Tokyo")), "", "2026-11-20 18:00:00"},
		"missed, in a time zone": {
			base(every("0 3 * * *", "Asia/Tokyo"), last("2026-11-18 18:00:00")),
			"2026-11-19 18:00:00", "2026-11-20 18:00:00",
		},
		"over a gap, though the schedule is not due": {
			base(gap("2026-11-20 11:00:00")), "2026-11-20 11:00:00", "2026-11-21 03:00:00",
		},
		"not at once again for a gap that one was made for": {
			base(gap("2026-11-20 02:00:00"), now("2026-11-20 03:59:00")), "", "2026-11-21 03:00:00",
		},
		"but an hour later, if it did not mend it": {
			base(gap("2026-11-20 02:00:00")), "2026-11-20 04:00:00", "2026-11-21 03:00:00",
		},
		"another first one an hour after the first failed": {
			base(failed), "2026-11-20 04:00:00", "2026-11-21 03:00:00",
		},
		"but not before":          {base(failed, now("2026-11-20 03:30:00")), "", "2026-11-21 03:00:00"},
		"a date that never comes": {base(every("0 0 30 2 *", "")), "", ""},
		"summer time begins: 2:30 is left out that day": {
			base(every("30 2 * * *", "Europe/Berlin"), last("2026-03-28 01:30:00"), now("2026-03-29 12:00:00")),
			"", "2026-03-30 00:30:00",
		},
		"summer time begins: 4:00 comes an hour sooner": {
			base(every("0 4 * * *", "Europe/Berlin"), last("2026-03-28 03:00:00"), now("2026-03-29 12:00:00")),
			"2026-03-29 02:00:00", "2026-03-30 02:00:00",
		},
		"summer time ends: 4:00 comes an hour later": {
			base(every("0 4 * * *", "Europe/Berlin"), last("2026-10-24 02:00:00"), now("2026-10-25 12:00:00")),
			"2026-10-25 03:00:00", "2026-10-26 03:00:00",
		},
		"summer time ends: every hour is every hour of UTC": {
			base(every("@hourly", "Europe/Berlin"), last("2026-10-25 00:00:00"), now("2026-10-25 01:30:00")),
			"2026-10-25 01:00:00", "2026-10-25 02:00:00",
		},
		"a clock that was set back: nothing before the last": {
			base(now("2026-11-20 01:00:00")), "", "2026-11-20 03:00:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.plan.decide()
			if err != nil {
				t.Fatal(err)
			}
			if s := shown(got.Due); s != c.due {
				t.Errorf("due at %q, want %q", s, c.due)
			}
			if s := shown(got.Next); s != c.next {
				t.Errorf("next at %q, want %q", s, c.next)
			}
			if (got.Reason == "") != got.Due.IsZero() {
				t.Errorf("the reason is %q", got.Reason)
			}
			if again, _ := c.plan.decide(); again != got {
				t.Errorf("asked again it says %+v", again)
			}
		})
	}
}

func shown(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// What was caught up is not caught up again: with the backup on record, nothing is due.
func TestAMissedRunIsCaughtUpOnce(t *testing.T) {
	a := backupPlan{
		schedule: "*/5 * * * *", now: worldtest.At("2026-11-20 12:03:00"),
		working: worldtest.At("2026-11-01 12:00:00"), last: worldtest.At("2026-11-19 00:00:00"), complete: true,
	}
	first, _ := a.decide()
	a.last = first.Due
	if second, _ := a.decide(); !second.Due.IsZero() {
		t.Errorf("after %s also %s is due", first.Due, second.Due)
	}
}

func TestAScheduleThatCantBeUnderstoodIsASentence(t *testing.T) {
	for name, c := range map[string]struct{ schedule, zone, want string }{
		"five words":   {"every day", "", `spec.backup.schedule "every day"`},
		"out of range": {"0 25 * * *", "", `spec.backup.schedule "0 25 * * *"`},
		"seconds":      {"0 0 3 * * *", "", `spec.backup.schedule "0 0 3 * * *"`},
		"no zone":      {"@daily", "Mars/Base", `the time zone "Mars/Base" of spec.backup.schedule`},
	} {
		t.Run(name, func(t *testing.T) {
			a := backupPlan{
				schedule: c.schedule, zone: c.zone, now: worldtest.At("2026-11-20 12:00:00"),
				working: worldtest.At("2026-11-01 12:00:00"),
			}
			got, err := a.decide()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
			if got.Due.IsZero() {
				t.Error("the first backup waits for the schedule to be mended")
			}
		})
	}
}

package archive

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestABackupIsOverdue(t *testing.T) {
	with := func(schedule string, modify ...func(*promise)) promise {
		p := promise{
			timetable: table(t, schedule, spread{}), now: worldtest.At("2026-11-20 12:00:00"),
			made:     worldtest.At("2026-01-01 00:00:00"),
			complete: tried{name: "x-good", due: worldtest.At("2026-11-20 03:00:00")}, working: true,
		}
		for _, m := range modify {
			m(&p)
		}
		return p
	}
	complete := func(text string) func(*promise) { return func(p *promise) { p.complete.due = worldtest.At(text) } }
	now := func(text string) func(*promise) { return func(p *promise) { p.now = worldtest.At(text) } }
	none := func(p *promise) { p.complete = tried{} }
	made := func(text string) func(*promise) { return func(p *promise) { p.made = worldtest.At(text) } }
	down := func(p *promise) { p.working = false }
	failed := func(name, began string) func(*promise) {
		return func(p *promise) {
			p.attempts = append(p.attempts,
				tried{name: name, due: worldtest.At(began), began: worldtest.At(began), ended: true,
					message: "no route"})
		}
	}
	runs := func(name, began string) func(*promise) {
		return func(p *promise) {
			p.attempts = append(p.attempts, tried{name: name, due: worldtest.At(began), began: worldtest.At(began)})
		}
	}
	for name, c := range map[string]struct {
		promise promise
		want    string // a part of what is said, "" where nothing is
	}{
		"the last run has one":                    {with("0 3 * * *"), ""},
		"today's runs still, yesterday's is fine": {with("0 3 * * *", complete("2026-11-19 03:00:00")), ""},
		"yesterday's is missing": {
			with("0 3 * * *", complete("2026-11-18 03:00:00")), "x-good; the schedule has asked for one at 2026-11-19",
		},
		"a day to the second is in time": {
			with("0 3 * * *", complete("2026-11-18 03:00:00"), now("2026-11-20 02:59:59")), "",
		},
		"and then it is not": {
			with("0 3 * * *", complete("2026-11-18 03:00:00"), now("2026-11-20 03:00:00")),
			"2026-11-19T03:00:00Z",
		},
		"weekly: a day after the run too": {
			with("0 3 * * 4", complete("2026-11-12 03:00:00")), "2026-11-19T03:00:00Z", // Thursday
		},
		"hourly: two hours": {with("@hourly", complete("2026-11-20 09:00:00")), "2026-11-20T10:00:00Z"},
		"hourly: less than two hours": {
			with("@hourly", complete("2026-11-20 09:00:01"), now("2026-11-20 11:59:59")), "",
		},
		"of every minute: an hour":       {with("* * * * *", complete("2026-11-20 11:00:00")), ""},
		"of every minute: after an hour": {with("* * * * *", complete("2026-11-20 10:58:00")), "2026-11-20T10:59"},
		"one that was asked for counts":  {with("0 3 * * *", complete("2026-11-19 17:23:11")), ""},
		"a date that never comes":        {with("0 0 30 2 *", complete("2026-01-02 00:00:00")), ""},
		"no run since it was made":       {with("0 3 * * *", none, made("2026-11-20 03:00:01")), ""},
		"made a week ago, and the archive has never worked: Archiving says so": {
			with("0 3 * * *", none, made("2026-11-13 00:00:00"), down), "",
		},
		"made a week ago, and all have failed": {
			with("0 3 * * *", none, made("2026-11-13 00:00:00"), failed("x-1", "2026-11-13 00:01:00"),
				failed("x-2", "2026-11-19 03:00:00")), "no backup is complete",
		},
		"it says what the last one has said, though another runs": {
			with("0 3 * * *", complete("2026-11-18 03:00:00"), failed("x-1", "2026-11-19 03:00:00"),
				runs("x-2", "2026-11-20 03:00:00")), "x-1 has failed: no route",
		},
		"the archive worked, and does not": {
			with("0 3 * * *", complete("2026-11-18 03:00:00"), down), "see the condition Archiving",
		},
		"the operator was away for a week, and has begun one": {
			with("0 3 * * *", complete("2026-11-12 03:00:00"), runs("x-1", "2026-11-20 11:59:00")), "",
		},
		"which has not ended in its time": {
			with("0 3 * * *", complete("2026-11-12 03:00:00"), runs("x-1", "2026-11-19 11:59:00")),
			"x-1 was begun and has not ended",
		},
		"it waits for hours": {
			with("@hourly", complete("2026-11-20 05:00:00"), runs("x-1", "2026-11-20 06:00:00")), "kubectl describe",
		},
		"with a spread, from when the run begins": {
			with("0 3 * * *", complete("2026-11-18 03:05:00"), func(p *promise) {
				p.spread, p.now = spread{0.5, over(time.Hour)}, worldtest.At("2026-11-20 03:29:59")
			}), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.promise.overdue()
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
			c.promise.now = c.promise.now.Add(30 * time.Second)
			if later := c.promise.overdue(); got != "" && later != got {
				t.Errorf("half a minute later it says %q, which is a write without news", later)
			}
		})
	}
}

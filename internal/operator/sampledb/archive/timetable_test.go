package archive

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func table(t *testing.T, schedule string, s spread) timetable {
	t.Helper()
	parsed, err := world.ParseSchedule("spec.backup.schedule", schedule, "")
	if err != nil {
		t.Fatal(err)
	}
	return timetable{parsed, s}
}

// Nobody would notice that nothing is done by a schedule that never comes.
func TestAScheduleThatNeverComes(t *testing.T) {
	for schedule, comes := range map[string]bool{
		"0 3 31 2 *": false, "0 0 30 2 *": false, "0 3 31 4,6,9,11 *": false, "0 3 29 2 *": true, "0 3 31 1,2 *": true,
		"0 3 31 2 1": true, // on Mondays of February too
	} {
		plan := backupPlan{schedule: schedule, now: worldtest.At("2026-11-20 04:00:00")}
		verdict := topicsOf(world.Core{DB: &v1.SampleDB{}, Now: plan.now}).keepsSchedule(plan, nil, nil)
		if invalid := verdict.Reason == v1.ReasonScheduleInvalid; invalid == comes {
			t.Errorf("%s: %+v", schedule, verdict)
		}
	}
}

func over(d time.Duration) *time.Duration { return &d }

func TestWhenARunBegins(t *testing.T) {
	for name, c := range map[string]struct {
		schedule    string
		spread      spread
		run, begins string
	}{
		"a daily one, over 15 minutes": {"0 3 * * *", spread{share: 0.5}, "2026-11-20 03:00:00", "2026-11-20 03:07:30"},
		"an hourly one, over 6":        {"@hourly", spread{share: 0.5}, "2026-11-20 03:00:00", "2026-11-20 03:03:00"},
		"one of five minutes, over half a one": {
			"*/5 * * * *", spread{share: 0.5}, "2026-11-20 03:00:00", "2026-11-20 03:00:15",
		},
		"by the time until this run's next one": {
			"0 3,4 * * *", spread{share: 0.5}, "2026-11-20 03:00:00", "2026-11-20 03:03:00",
		},
		"over a night": {
			"0 0 * * *", spread{0.5, over(6 * time.Hour)}, "2026-11-20 00:00:00", "2026-11-20 03:00:00",
		},
		"never after the next run": {
			"@hourly", spread{0.5, over(24 * time.Hour)}, "2026-11-20 03:00:00", "2026-11-20 03:30:00",
		},
		"exactly":                 {"0 3 * * *", spread{0.9, over(0)}, "2026-11-20 03:00:00", "2026-11-20 03:00:00"},
		"of a schedule not given": {"0 3 * * *", spread{}, "2026-11-20 03:00:00", "2026-11-20 03:00:00"},
		"the first share is none": {"0 3 * * *", spread{share: 0}, "2026-11-20 03:00:00", "2026-11-20 03:00:00"},
		"in whole seconds, for it is in names": {
			"0 3 * * *", spread{share: 0.33333}, "2026-11-20 03:00:00", "2026-11-20 03:04:59",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shown(table(t, c.schedule, c.spread).begins(worldtest.At(c.run))); got != c.begins {
				t.Errorf("it begins at %s, want %s", got, c.begins)
			}
		})
	}
}

func TestWhichRunIsDueAndWhichIsNext(t *testing.T) {
	day, night := spread{share: 0.5}, spread{0.5, over(6 * time.Hour)}
	for name, c := range map[string]struct {
		spread            spread
		last, now         string
		wantDue, wantNext string
	}{
		"before the schedule's time": {day, "2026-11-19 03:07:30", "2026-11-20 02:59:00", "", "2026-11-20 03:07:30"},
		"after it, and before its own": {
			day, "2026-11-19 03:07:30", "2026-11-20 03:07:29", "", "2026-11-20 03:07:30",
		},
		"at its own": {
			day, "2026-11-19 03:07:30", "2026-11-20 03:07:30", "2026-11-20 03:07:30", "2026-11-21 03:07:30",
		},
		"once": {day, "2026-11-20 03:07:30", "2026-11-20 12:00:00", "", "2026-11-21 03:07:30"},
		"missed, and the next is not due yet": {
			day, "2026-11-18 03:07:30", "2026-11-20 03:05:00", "2026-11-19 03:07:30", "2026-11-20 03:07:30",
		},
		"a backup of a release without a spread is no reason for another": {
			day, "2026-11-20 03:00:00", "2026-11-20 12:00:00", "", "2026-11-21 03:07:30",
		},
		"nor one before the spread became more": {
			night, "2026-11-20 03:07:30", "2026-11-20 12:00:00", "", "2026-11-21 06:00:00",
		},
		"nor one before it became less": {
			day, "2026-11-20 06:00:00", "2026-11-20 12:00:00", "", "2026-11-21 03:07:30",
		},
		"one that was asked for after the schedule's time": {
			night, "2026-11-20 04:00:00", "2026-11-20 07:00:00", "", "2026-11-21 06:00:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := table(t, "0 3 * * *", c.spread)
			if got := shown(of.latest(worldtest.At(c.last), worldtest.At(c.now))); got != c.wantDue {
				t.Errorf("due is %q, want %q", got, c.wantDue)
			}
			if got := shown(of.next(worldtest.At(c.now))); got != c.wantNext {
				t.Errorf("next is %q, want %q", got, c.wantNext)
			}
		})
	}
}

// A thousand SampleDBs with one schedule: in no minute of the quarter of an hour do many begin.
func TestSampleDBsWithOneScheduleBeginApart(t *testing.T) {
	minutes := map[string]int{}
	run := worldtest.At("2026-11-20 03:00:00")
	for i := range 1000 {
		db := &v1.SampleDB{Spec: v1.SampleDBSpec{Backup: &v1.BackupSpec{Schedule: "0 3 * * *"}}}
		db.UID = types.UID(fmt.Sprintf("0b5c41d2-%d", i))
		of := table(t, "0 3 * * *", spreadOf(db, ofBackups))
		begins := of.begins(run)
		if begins.Before(run) || begins.Sub(run) >= spreadAtMost || !begins.Equal(of.begins(run)) {
			t.Fatalf("it begins at %s", shown(begins))
		}
		minutes[begins.Format("15:04")]++
	}
	for minute, n := range minutes {
		if len(minutes) != 15 || n > 120 {
			t.Errorf("%d of 1000 begin at %s, in one of %d minutes", n, minute, len(minutes))
		}
	}
}

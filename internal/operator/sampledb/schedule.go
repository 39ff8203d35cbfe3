package sampledb

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// failedPause is after how long another backup is tried when the first, or the one over a gap, has failed.
const failedPause = time.Hour

// backupPlan is what decides when a backup is due.
type backupPlan struct {
	// schedule and zone are as in the spec.
	schedule, zone string
	spread         spread
	now            time.Time
	// working is since when the archive works, zero while it does not; anew since when a backup is needed at once,
	// for the reason why: the archive has a gap, goes on along another branch or with another key, or is broken. It is
	// zero where none is, or one has made that good.
	working, anew time.Time
	why           string
	// last is for when the latest backup was due, or when it was asked for; zero where there is none.
	last time.Time
	// full says that it has to be a full one.
	full bool
	// complete says that there is a complete backup, busy that one waits or is under way.
	complete, busy bool
}

// plannedBackup is what follows of a backupPlan.
type plannedBackup struct {
	// due is for when a backup has to be made now, zero for none; reason says why.
	due    time.Time
	reason string
	full   bool
	// next is when the schedule asks for the next, zero where it never does.
	next time.Time
}

// decide says whether a backup is due. Each time that it can name is one that is on record, so that
// one who asks again (an operator that was started anew) gets the same. Runs that were missed are
// caught up once. An error is of the schedule, and for the user; what does not depend on it is still due.
func (a backupPlan) decide() (plannedBackup, error) {
	schedule, err := parseSchedule("spec.backup.schedule", a.schedule, a.zone)
	out := plannedBackup{full: a.full}
	table := timetable{schedule, a.spread}
	if schedule != nil {
		out.next = table.next(a.now)
	}
	if a.working.IsZero() || a.busy {
		return out, err
	}
	switch {
	case a.last.IsZero():
		out.due, out.reason = a.working, "the archive has none yet"
	case a.anew.After(a.last):
		out.due, out.reason = a.anew, a.why
	case !a.anew.IsZero() && a.now.Sub(a.last) >= failedPause:
		out.due, out.reason = a.last.Add(failedPause), a.why+", and no backup since is complete"
	case !a.complete && a.now.Sub(a.last) >= failedPause:
		out.due, out.reason = a.last.Add(failedPause), "the archive has no complete one"
	case schedule != nil:
		if out.due = table.latest(a.last, a.now); !out.due.IsZero() {
			out.reason = "the schedule asks for it"
		}
	}
	return out, err
}

// parseSchedule reads the schedule in a field of the spec, nil for none. Its errors are sentences for the user.
func parseSchedule(field, text, zone string) (cron.Schedule, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no schedule is a schedule that never asks for anything
	}
	location, err := time.LoadLocation(zone) // UTC for ""
	if err != nil {
		return nil, fmt.Errorf("the time zone %q of %s is not known: it must be a name such as Asia/Tokyo", zone, field)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("%s %q can't be understood (%w): it must be like \"0 3 * * *\", or @daily",
			field, text, err)
	}
	return zoned{schedule, location}, nil
}

// zoned is a schedule of a time zone. The location of time.Local in a schedule of cron's means "that of the argument".
type zoned struct {
	cron.Schedule
	location *time.Location
}

// Next is of cron.Schedule.
func (z zoned) Next(t time.Time) time.Time {
	next := z.Schedule.Next(t.In(z.location))
	if next.IsZero() {
		return next
	}
	return next.UTC()
}

// spans are how far back a missed run is looked for, the shorter ones first: a schedule of
// every minute has few runs in the first, and one of every year has some in the last.
var spans = []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 5 * 366 * 24 * time.Hour}

// latest is the last time the schedule asked for something after from and not after now, zero for never.
func latest(schedule cron.Schedule, from, now time.Time) time.Time {
	for _, span := range spans {
		begin := now.Add(-span)
		if begin.Before(from) {
			begin = from
		}
		var found time.Time
		for next := schedule.Next(begin); !next.IsZero() && !next.After(now); next = schedule.Next(next) {
			found = next
		}
		if !found.IsZero() || begin.Equal(from) {
			return found
		}
	}
	return time.Time{}
}

package world

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// PlannedBackup is what follows of a backupPlan.
type PlannedBackup struct {
	// Due is for when a backup has to be made now, zero for none; reason says why.
	Due    time.Time
	Reason string
	Full   bool
	// Next is when the schedule asks for the next, zero where it never does.
	Next time.Time
}

// ParseSchedule reads the schedule in a field of the spec, nil for none. Its errors are sentences for the user.
func ParseSchedule(field, text, zone string) (cron.Schedule, error) {
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

// Spans are how far back a missed run is looked for, the shorter ones first: a schedule of
// every minute has few runs in the first, and one of every year has some in the last.
var Spans = []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 5 * 366 * 24 * time.Hour}

// Latest is the last time the schedule asked for something after from and not after now, zero for never.
func Latest(schedule cron.Schedule, from, now time.Time) time.Time {
	for _, span := range Spans {
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

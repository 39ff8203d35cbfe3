package archive

import (
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// The default of spec.backup.spread: this part of the time until the next run, and no more than spreadAtMost.
const (
	spreadPart   = 10
	spreadAtMost = 15 * time.Minute
)

// spread is how much later than the schedule says a run begins. The zero value is exactly then.
type spread struct {
	// share is the SampleDB's own, from 0 to less than 1, of the time over which runs are spread.
	share float64
	// over is that time, nil for the default.
	over *time.Duration
}

// The schedules of a SampleDB, as the spec gives them.
func ofBackups(spec v1.BackupSpec) string       { return spec.Schedule }
func ofVerifications(spec v1.BackupSpec) string { return spec.Verification.Schedule }

// spreadOf is the spread of a schedule of the spec. That of Toban's own choice, where the spec gives none, is at a
// minute of the SampleDB's own already.
func spreadOf(db *v1.SampleDB, schedule func(v1.BackupSpec) string) spread {
	if db.Spec.Backup == nil || schedule(*db.Spec.Backup) == "" {
		return spread{}
	}
	h := fnv.New32a()
	h.Write([]byte(db.UID))
	const parts = 10_000
	out := spread{share: float64(h.Sum32()%parts) / parts}
	if over := db.Spec.Backup.Spread; over != nil {
		out.over = &over.Duration
	}
	return out
}

// timetable is a schedule whose runs begin a little later than it says. Each begins before the next one is due, so
// their order is that of the schedule.
type timetable struct {
	schedule cron.Schedule
	spread   spread
}

// begins is when a run begins that the schedule asks for.
func (t timetable) begins(run time.Time) time.Time {
	if run.IsZero() || t.spread.share == 0 {
		return run
	}
	gap := t.gap(run)
	over := min(gap/spreadPart, spreadAtMost)
	if t.spread.over != nil {
		over = min(gap, *t.spread.over)
	}
	return run.Add(time.Duration(t.spread.share * float64(over)).Truncate(time.Second))
}

// gap is the time from a run to the next, very long where there is none.
func (t timetable) gap(run time.Time) time.Duration {
	next := t.schedule.Next(run)
	if next.IsZero() {
		return world.Spans[len(world.Spans)-1]
	}
	return next.Sub(run)
}

// latest is when the last run began that the schedule asked for after from, and that has begun by now; zero for none.
func (t timetable) latest(from, now time.Time) time.Time {
	run := world.Latest(t.schedule, from, now)
	if begins := t.begins(run); !begins.After(now) {
		return begins
	}
	return t.begins(world.Latest(t.schedule, from, run.Add(-time.Second)))
}

// next is when the next run begins, zero for never.
func (t timetable) next(now time.Time) time.Time {
	const longest = 24 * time.Hour // of spec.backup.spread
	if begins := t.begins(world.Latest(t.schedule, now.Add(-longest), now)); begins.After(now) {
		return begins
	}
	return t.begins(t.schedule.Next(now))
}

// first is the first run that the schedule asks for after from, and when it begins; zero for none.
func (t timetable) first(from time.Time) (run, begins time.Time) {
	run = t.schedule.Next(from)
	return run, t.begins(run)
}

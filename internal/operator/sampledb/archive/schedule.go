package archive

import (
	"time"

	"toban.dev/internal/operator/sampledb/world"
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

// decide says whether a backup is due. Each time that it can name is one that is on record, so that
// one who asks again (an operator that was started anew) gets the same. Runs that were missed are
// caught up once. An error is of the schedule, and for the user; what does not depend on it is still due.
func (a backupPlan) decide() (world.PlannedBackup, error) {
	schedule, err := world.ParseSchedule("spec.backup.schedule", a.schedule, a.zone)
	out := world.PlannedBackup{Full: a.full}
	table := timetable{schedule, a.spread}
	if schedule != nil {
		out.Next = table.next(a.now)
	}
	if a.working.IsZero() || a.busy {
		return out, err
	}
	switch {
	case a.last.IsZero():
		out.Due, out.Reason = a.working, "the archive has none yet"
	case a.anew.After(a.last):
		out.Due, out.Reason = a.anew, a.why
	case !a.anew.IsZero() && a.now.Sub(a.last) >= failedPause:
		out.Due, out.Reason = a.last.Add(failedPause), a.why+", and no backup since is complete"
	case !a.complete && a.now.Sub(a.last) >= failedPause:
		out.Due, out.Reason = a.last.Add(failedPause), "the archive has no complete one"
	case schedule != nil:
		if out.Due = table.latest(a.last, a.now); !out.Due.IsZero() {
			out.Reason = "the schedule asks for it"
		}
	}
	return out, err
}

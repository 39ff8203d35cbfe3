package desired

import (
	"fmt"
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// ScheduleNone is the schedule that never asks for anything.
const ScheduleNone = "none"

// maxLag is the default of backup.maxLag: a database that writes all the time makes 360 requests in an hour then, and
// may lose ten seconds with all of its volumes.
const maxLag = 10 * time.Second

// scrubDays is the default of backup.verification.scrub.days.
const scrubDays = 30

// Backup is spec.backup with its defaults: an archive on a volume of its own, a backup a day, seven kept, and one
// restored a week to prove it. It is nil where the spec does without (backup.none). The schedules it has are those
// to act on: "" is never.
func Backup(db *v1.SampleDB) *v1.BackupSpec {
	out := &v1.BackupSpec{}
	if db.Spec.Backup != nil {
		out = db.Spec.Backup.DeepCopy()
	}
	if out.None {
		return nil
	}
	own := minuteOf(string(db.UID))
	out.Schedule = schedule(out.Schedule, own.daily())
	if v := &out.Verification; v.Schedule != "" || !v.AfterBackup {
		v.Schedule = schedule(v.Schedule, own.weekly())
	}
	if out.MaxLag == nil {
		out.MaxLag = &metav1.Duration{Duration: maxLag}
	}
	if out.Verification.Scrub == nil {
		out.Verification.Scrub = &v1.ScrubSpec{}
	}
	if scrub := out.Verification.Scrub; scrub.Days == 0 {
		scrub.Days = scrubDays
	}
	if out.Retention.Count == 0 {
		out.Retention.Count = keptBackups
	}
	return out
}

// schedule is the one of the spec, or where that has none, another.
func schedule(spec, other string) string {
	switch spec {
	case "":
		return other
	case ScheduleNone:
		return ""
	}
	return spec
}

// minuteOfWeek is a minute of the week that belongs to a SampleDB, so that of a thousand that say nothing about
// when, not all take their backups at once.
type minuteOfWeek int

const minutesOfDay = int(24 * time.Hour / time.Minute)

func minuteOf(uid string) minuteOfWeek {
	h := fnv.New32a()
	h.Write([]byte(uid))
	return minuteOfWeek(int(h.Sum32()) % (7 * minutesOfDay))
}

// daily is that minute of every day, as in cron.
func (m minuteOfWeek) daily() string {
	of := int(m) % minutesOfDay
	return fmt.Sprintf("%d %d * * *", of%60, of/60)
}

// weekly is an hour later, when the day's backup is most probably there, once a week.
func (m minuteOfWeek) weekly() string {
	at := (int(m) + 60) % (7 * minutesOfDay)
	of := at % minutesOfDay
	return fmt.Sprintf("%d %d * * %d", of%60, of/60, at/minutesOfDay)
}

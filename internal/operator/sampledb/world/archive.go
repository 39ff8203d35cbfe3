package world

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// archiveBehind is for how much longer than it may WAL waits for the archive before it is said to be behind.
const archiveBehind = time.Minute

// ArchiveState is what the primary says of its archive, nil where that is not known: an agent that has just been told
// of another archive may still say how far the former one is.
func (s *archiveFacts) ArchiveState() *protocol.ArchiveStatus {
	state := s.Seen.Answers[s.Primary()].Archive
	if state != nil && state.Place != "" && s.Config.Archive != nil && state.Place != s.Config.Archive.Place() {
		return nil
	}
	return state
}

// Archiving is true when the WAL reaches the archive.
func (s *archiveFacts) Archiving() Verdict {
	v := s.archiving()
	if v.Status != metav1.ConditionFalse {
		return v
	}
	for i := range s.Seen.ArchivePods { // the agents can't know why the server of the archive does not answer
		if t := pods.TroubleOf(&s.Seen.ArchivePods[i]); t != nil {
			v.Message += "; " + t.Message
		}
	}
	return v
}

// archiving is the same as far as the agents know.
func (s *archiveFacts) archiving() Verdict {
	primary, state := s.Primary(), s.ArchiveState()
	switch {
	case s.Backup == nil:
		return No(v1.ReasonNoArchive, "spec.backup.none: there is no archive and no backup. Data that is deleted "+
			"or changed by mistake, or lost with the volumes, can't be restored")
	case s.Stop.Down():
		return s.archivingStopped()
	case primary == "" && len(s.Silent()) > 0:
		return Unknown("the agents could not be asked")
	case primary == "":
		return No(v1.ReasonArchiveStarting, "waits for a primary")
	case state == nil:
		return No(v1.ReasonArchiveStarting, primary+" has not reported the state of its archive yet")
	case state.Reason == protocol.ArchiveTaken:
		return No(v1.ReasonArchiveTaken, state.Error)
	case state.Reason == protocol.ArchiveAhead:
		return No(v1.ReasonArchiveAhead, state.Error+". To get back what it has lost: "+BringBack(s.DB.Name)+
			". To continue with the present data, give spec.backup.store another prefix")
	case state.Reason == protocol.ArchiveUnfit:
		return No(v1.ReasonArchiveStoreUnfit, state.Error)
	case state.Reason == protocol.ArchiveFull:
		return No(v1.ReasonArchiveFull, state.Error+": give the store more room, or keep less (spec.backup.retention)")
	case state.Reason != "":
		return No(v1.ReasonArchiveFailing, state.Error)
	case s.OpenGap() != "":
		return No(v1.ReasonArchiveGap, fmt.Sprintf("WAL %s is in no archive: a new base backup is taken", s.OpenGap()))
	case state.LSN == "":
		return No(v1.ReasonArchiveStarting, primary+" is finding the end of the archive")
	case state.LagSeconds > (s.Backup.MaxLag.Duration + archiveBehind).Seconds():
		return No(v1.ReasonArchiveBehind, fmt.Sprintf("WAL has waited for the archive for longer than %.0f s",
			(s.Backup.MaxLag.Duration+archiveBehind).Seconds()))
	}
	return Yes(v1.ReasonArchiving, "the WAL reaches the archive as it is written")
}

// OpenGap is the gap that the primary knows of, "" where there is none or where a backup begins behind it.
func (s *archiveFacts) OpenGap() string {
	state := s.ArchiveState()
	if state == nil || state.Gap == "" {
		return ""
	}
	end, known := state.GapEndsAt()
	if !known {
		return state.Gap // better a backup too many
	}
	for _, b := range s.Seen.Backups {
		start, err := wal.ParseLSN(b.Status.StartLSN)
		if err == nil && start >= end && s.InArchive(&b) {
			return ""
		}
	}
	return state.Gap
}

// InArchive says that a backup is complete and in the archive of this very SampleDB.
func (s *archiveFacts) InArchive(b *v1.DatabaseBackup) bool {
	return Complete(b) && s.IsIn(b, s.ArchivePath())
}

// IsIn says that a backup is, or was to be, in the folder of an archive in the store that is used now.
func (s *archiveFacts) IsIn(b *v1.DatabaseBackup, path string) bool {
	return b.Status.Archive != nil && b.Status.Archive.Path == path &&
		desired.StoreOf(b, s.DB.Name) == desired.PresentStore(s.DB)
}

// Complete says that a backup is, and has not been removed.
func Complete(b *v1.DatabaseBackup) bool {
	return meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete) && b.Status.ID != "" &&
		b.Status.Archive != nil
}

// ArchivePath is the folder of the archive of the major version that runs.
func (s *archiveFacts) ArchivePath() string {
	return desired.ArchivePath(s.DB, desired.VersionsOf(s.Config))
}

// Ended says that a backup is over, well or not.
func Ended(b *v1.DatabaseBackup) bool {
	return b.Status.CompletedAt != nil || b.DeletionTimestamp != nil
}

// AwaitsOther says that a backup has not begun only because something else is at work in the archive.
func AwaitsOther(b *v1.DatabaseBackup) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
	return !Ended(b) && b.Status.StartedAt == nil && c != nil && c.Reason == v1.ReasonWaiting
}

// BackupOf is the SampleDB's complete backup of a name in the archive, nil where there is none.
func (s *archiveFacts) BackupOf(name string) *v1.DatabaseBackup {
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; b.Name == name && s.InArchive(b) {
			return b
		}
	}
	return nil
}

// RehearsedBackups are the backups, by their ids, that a rehearsal restores.
func (s *archiveFacts) RehearsedBackups() (ids []string) {
	running := []*v1.RehearsalStatus{s.Rehearsal}
	if s.Upgrade != nil {
		running = append(running, s.Upgrade.Rehearsal)
	}
	for _, r := range running {
		if r == nil || r.Ended() {
			continue
		}
		if b := s.BackupOf(r.Backup); b != nil {
			ids = append(ids, b.Status.ID)
		}
	}
	return ids
}

// LastBackup is the last complete one in the archive, nil where there is none.
func (s *archiveFacts) LastBackup() *v1.DatabaseBackup {
	var last *v1.DatabaseBackup
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if s.InArchive(b) && (last == nil || last.Status.CompletedAt.Before(b.Status.CompletedAt)) {
			last = b
		}
	}
	return last
}

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

// ParseComing is ParseSchedule where the schedule has to ask for something: as far as cron looks, which is five years,
// from the beginning of a leap year on.
func ParseComing(field, text, zone string) (cron.Schedule, error) {
	schedule, err := ParseSchedule(field, text, zone)
	if schedule == nil || err != nil || !schedule.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return schedule, err
	}
	return nil, fmt.Errorf("%s %q never comes, because no month that it names has that day", field, text)
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

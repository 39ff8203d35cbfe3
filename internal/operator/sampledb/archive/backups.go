package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/sampledb/world"
)

// backupsTopic takes backups when they are due, and says when the next one is.
type backupsTopic struct {
	base
	// Scheduled is the condition Scheduled, VerifiesNext when the next verification
	// is (zero where none will be).
	Scheduled    world.Verdict
	VerifiesNext time.Time
}

// ObserveBackups reads the DatabaseBackups that name this SampleDB, whoever made them, and what is being restored.
func (s *backupsTopic) ObserveBackups(ctx context.Context) error {
	if s.Backup == nil {
		return nil
	}
	all, err := index.Backups(ctx, s.Client, s.DB.Namespace, s.DB.Name)
	if err != nil {
		return err
	}
	for _, b := range all {
		if b.BySnapshot() { // none is in the archive, and no rule counts on one
			s.Seen.Snapshots = append(s.Seen.Snapshots, b)
		} else {
			s.Seen.Backups = append(s.Seen.Backups, b)
		}
	}
	s.Seen.Restores, err = index.Restores(ctx, s.Client, s.DB.Namespace)
	return err
}

// ApplyBackups creates the DatabaseBackup that is due. Its name is made of when it was due, so that an operator which
// ends between creating and noting it, or does not see it yet, makes no second one.
func (s *backupsTopic) ApplyBackups(ctx context.Context) error {
	if s.Backup == nil {
		return nil
	}
	plan := s.backupPlan()
	decided, invalid := plan.decide()
	begun, err := s.beginBackup(ctx, decided)
	s.Planned, s.Scheduled = decided, s.keepsSchedule(plan, begun, invalid)
	return errors.Join(err, s.applyVerification(ctx))
}

// beginBackup creates the DatabaseBackup that is due, nil where none is.
func (s *backupsTopic) beginBackup(
	ctx context.Context, decided world.PlannedBackup,
) (*v1.DatabaseBackup, error) {
	if decided.Due.IsZero() {
		return nil, nil //nolint:nilnil // none is due, and that is no error
	}
	backup := desired.ScheduledBackup(s.DB, decided.Due)
	backup.Spec.Full = decided.Full
	err := s.Client.Create(ctx, backup, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return backup, nil
	}
	if err != nil {
		return nil, world.Refused(err, "DatabaseBackup", backup.Name)
	}
	s.AddEvent(world.EventBackup, fmt.Sprintf("%s is taken: %s", backup.Name, decided.Reason))
	return backup, nil
}

// keepsSchedule is the condition Scheduled, empty where there is no schedule. begun is the backup that was created just
// now, nil for none; invalid is what is wrong with the schedule.
func (s *backupsTopic) keepsSchedule(plan backupPlan, begun *v1.DatabaseBackup, invalid error) world.Verdict {
	switch {
	case plan.schedule == "":
		return world.Verdict{}
	case invalid != nil:
		return world.No(v1.ReasonScheduleInvalid, invalid.Error())
	}
	schedule, err := world.ParseComing("spec.backup.schedule", plan.schedule, plan.zone)
	if err != nil {
		return world.No(v1.ReasonScheduleInvalid, err.Error())
	}
	if words := s.promise(timetable{schedule, plan.spread}, begun).overdue(); words != "" {
		return world.No(v1.ReasonBackupOverdue, words)
	}
	return world.Yes(v1.ReasonScheduled, "backups are taken by the schedule "+plan.schedule)
}

// backupPlan is what the next backup depends on. Since when the archive works is read from the status, where it is
// on record, and not from what is just being seen.
func (s *backupsTopic) backupPlan() backupPlan {
	out := backupPlan{
		schedule: s.Backup.Schedule, zone: s.Backup.TimeZone, spread: spreadOf(s.DB, ofBackups), now: s.Now,
	}
	if c := meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionArchiving); c != nil &&
		archiveWorks(c) && !s.Starting() && !s.ArchiveLeft() {
		out.working = s.All.workingSince(c.LastTransitionTime.Time)
		if c.Reason == v1.ReasonArchiveGap {
			out.anew, out.why = c.LastTransitionTime.Time, "the archive has a gap"
		}
	}
	s.beginAnew(&out)
	for i := range s.Seen.Backups {
		b := &s.Seen.Backups[i]
		if b.Labels[naming.LabelOwner] == string(s.DB.UID) && !s.OfFormer(b) || s.InArchive(b) {
			if at := dueAt(b); at.After(out.last) {
				out.last = at
			}
		}
		out.complete = out.complete || s.InArchive(b)
		out.busy = out.busy || !world.Ended(b)
	}
	out.full = out.full || !out.complete && len(s.Archives().Former) > 0
	return out
}

// beginAnew has a backup be needed at once where what there is does not do any more.
func (s *backupsTopic) beginAnew(a *backupPlan) {
	broken, key, moved := s.All.newestBroken(), s.All.keyChanged(), s.All.storeChanged()
	// Else it would be the change from what can't be restored, need the former key, or lack WAL of the time between.
	a.full = !broken.IsZero() || !key.IsZero() || !moved.IsZero()
	a.since(s.leftBranch(), "the database was restored in place")
	a.since(moved, "the archive is in another store")
	a.since(broken, "objects of the newest backup, or WAL since, are broken")
	a.since(key, "the key of the archive was changed")
}

// since has a backup be needed at once since a moment, zero for none, unless something later needs one.
func (a *backupPlan) since(at time.Time, why string) {
	if at.After(a.anew) {
		a.anew, a.why = at, why
	}
}

// leftBranch is when the database was restored in place, zero where it was not, or where a backup since is complete.
// Those from before may be of what was left.
func (s *backupsTopic) leftBranch() time.Time {
	r := s.DB.Status.Restore
	if r == nil || r.ID == "" || r.CompletedAt == nil {
		return time.Time{}
	}
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; s.InArchive(b) && !dueAt(b).Before(r.CompletedAt.Time) {
			return time.Time{}
		}
	}
	return r.CompletedAt.Time
}

// archiveWorks says that a backup can be taken: WAL reaches the archive, late or after a gap.
func archiveWorks(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionTrue || c.Reason == v1.ReasonArchiveGap || c.Reason == v1.ReasonArchiveBehind
}

// dueAt is for when a backup was due by the schedule, or when it was asked for.
func dueAt(b *v1.DatabaseBackup) time.Time {
	if at, err := time.Parse(time.RFC3339, b.Annotations[naming.AnnotationDue]); err == nil {
		return at
	}
	return b.CreationTimestamp.Time
}

// ArchiveChanges are the events about the archive.
func ArchiveChanges(old, now v1.SampleDBStatus) []world.Event {
	out := archivingChanges(world.Turned(old, now, v1.ConditionArchiving))
	if now.Backup != nil {
		out = append(out, backupChanges(old.Backup, now.Backup)...)
	}
	if c := world.Turned(old, now, v1.ConditionRetentionApplied); c != nil && c.Status == metav1.ConditionFalse &&
		c.Reason != v1.ReasonRetentionHeld {
		out = append(out, world.Warning(world.EventNotRemoved, fmt.Sprintf("%s: %s", c.Reason, c.Message)))
	}
	if c := world.Turned(old, now, v1.ConditionScheduled); c != nil && c.Status == metav1.ConditionFalse {
		out = append(out, world.Warning(world.ScheduleEvents[c.Reason], c.Message))
	}
	return out
}

// archivingChanges is the event that tells of another state of the condition Archiving, nil for none.
func archivingChanges(c *metav1.Condition) []world.Event {
	switch {
	case c == nil:
	case c.Status == metav1.ConditionTrue:
		return []world.Event{world.Normal(world.EventArchiving, c.Message)}
	case c.Reason == v1.ReasonArchiveGap:
		return []world.Event{world.Warning(world.EventArchiveGap, c.Message)}
	case c.Status == metav1.ConditionFalse && c.Reason != v1.ReasonArchiveStarting:
		return []world.Event{world.Warning(world.EventArchiveFailing, fmt.Sprintf("%s: %s", c.Reason, c.Message))}
	}
	return nil
}

// backupChanges are the events that tell of another archive, and of why retention is held. There may be no status of
// before.
func backupChanges(old, now *v1.BackupStatus) (out []world.Event) {
	if moved := now.StoreSince; moved != nil && (old == nil || !moved.Equal(old.StoreSince)) {
		out = append(out, world.Normal(world.EventArchiving,
			fmt.Sprintf("the archive is in another store, %s, and begins there with a full backup", now.Store)))
	} else if old != nil && old.Archive != "" && old.Archive != now.Archive {
		out = append(out, world.Normal(world.EventArchiving,
			fmt.Sprintf("the archive of PostgreSQL %d is %s, and begins with a full backup; what %s has stays until "+
				"retention removes it", now.Version, now.Archive, old.Archive)))
	}
	if now.Retention != "" && (old == nil || old.Retention != now.Retention) {
		out = append(out, world.Warning(world.EventRetentionHeld, now.Retention))
	}
	return out
}

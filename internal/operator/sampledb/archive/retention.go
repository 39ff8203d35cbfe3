package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/removed"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// ApplyRetention has a Job remove what is not to be kept: in a store that is full, where no backup can begin, and so
// none can remove it; and after each backup where only that Job may. It goes some minutes after its end, and is made
// again if there is need for it then.
func (s *archiveTopic) ApplyRetention(ctx context.Context) error {
	if s.Backup == nil {
		return nil
	}
	if job := s.retentionJob(); job != nil {
		return s.lookAtRetention(ctx, job)
	}
	full := s.storeFull()
	if !full && (!s.retentionDue() || s.backupFirst()) || s.backingUp() {
		return nil
	}
	if err := s.Apply(ctx, s.DB, desired.RetentionJob(s.DB, s.Settings, s.Now)); err != nil {
		return err
	}
	if full {
		s.AddEvent(world.EventMakingRoom, "the store is full: what spec.backup.retention does not keep is removed")
	}
	return nil
}

// lookAtRetention does what there is to do about the Job that is there: it goes where it does not begin, and what its
// Pod has said counts.
func (s *archiveTopic) lookAtRetention(ctx context.Context, job *batchv1.Job) error {
	run := jobs.Of(job, s.Seen.BackupPods)
	if waitsForEver(run, s.Now) {
		// Another is made, or a backup begins, when its Pods are gone: neither may be beside one that removes.
		return jobs.Runner{Client: s.Client, Reader: s.Reader}.RemoveAfterPods(ctx, job)
	}
	s.retentionWaits = s.whyNoRetention(run)
	if err := s.makeWay(ctx); err != nil {
		return err
	}
	said := jobs.Result[protocol.BackupResult](run.Last(naming.ContainerBackup))
	if said == nil || said.Store != "" && !desired.OpensStore(s.DB, said.Store) {
		return nil // it has said nothing yet, or ran in the store before
	}
	s.retained = &retained{*said, dueSince(job)}
	return removed.NoteAll(ctx, s.Client, *said, removed.By{
		Archive: cmp.Or(said.Archive, s.ArchivePath()), Store: s.Backup.Store,
		When: "when Job " + job.Name + " ran",
	}, s.Seen.Backups)
}

// storeFull says that the store takes no more: then there is need for retention, whatever backups do.
func (s *archiveTopic) storeFull() bool {
	state := s.ArchiveState()
	return state != nil && state.Reason == protocol.ArchiveFull
}

// retentionNeeded says that what has failed is still to be done, or that this is not known for a moment, because no
// primary says whether the store is full.
func (s *archiveTopic) retentionNeeded() bool {
	return s.retentionDue() || s.storeFull() || s.ArchiveState() == nil
}

// undatedPatience is how old a Job without a deadline may become: as old as one with a deadline.
const undatedPatience = 24 * time.Hour

// waitsForEver says of a Job that it is of an older release, which gave none a deadline, and that it does not end.
func waitsForEver(run jobs.Run, now time.Time) bool {
	return run.State() == jobs.Running && run.Job.Spec.ActiveDeadlineSeconds == nil &&
		!now.Before(run.Job.CreationTimestamp.Add(undatedPatience))
}

// whyNoRetention says why a Job has not begun for long, or that it was ended by its deadline; "" where all is well, and
// where it is being removed, so that what was said before stays.
func (s *archiveTopic) whyNoRetention(run jobs.Run) string {
	if run.State() == jobs.Late {
		return fmt.Sprintf("Job %s was ended without a result (%s): see why its Pod could not run, or took so long",
			run.Job.Name, cmp.Or(run.EndMessage(), "its time was over"))
	}
	if run.State() != jobs.Running || run.Begun() {
		return ""
	}
	if s.isOld(run.Job) || s.failing() && pods.TroubleOf(run.Newest()) != nil {
		return fmt.Sprintf("Job %s can't begin: %s", run.Job.Name, notBegun(run))
	}
	return ""
}

// retentionPatience is how long the Pod of retention may wait to begin before that is said: a node is often made for
// it, and nothing is lost meanwhile.
const retentionPatience = 10 * time.Minute

// isOld says that a Job was made so long ago that its Pod should have begun. Where retention had failed before, what
// keeps the next Job from beginning is said earlier, so that the condition does not come and go.
func (s *archiveTopic) isOld(job *batchv1.Job) bool {
	return !s.Now.Before(job.CreationTimestamp.Add(retentionPatience))
}

// dueSince is when a Job was due, by the operator's clock, as is the end of a backup.
func dueSince(job *batchv1.Job) metav1.Time {
	if at, err := time.Parse(time.RFC3339, job.Annotations[naming.AnnotationDue]); err == nil {
		return metav1.NewTime(at)
	}
	return job.CreationTimestamp
}

// retained is what the Pod of a retention's Job has said, and when that was due.
type retained struct {
	protocol.BackupResult
	at metav1.Time
}

// retentionDue says that a backup has ended, well or not, since a Job has last removed what is not to be kept, where
// only such a Job may.
func (s *archiveTopic) retentionDue() bool {
	if !desired.DeletesApart(s.DB) {
		return false
	}
	last := metav1.Time{}
	if b := s.DB.Status.Backup; b != nil && b.LastRetentionAt != nil {
		last = *b.LastRetentionAt
	}
	return slices.ContainsFunc(s.Seen.Backups, func(b v1.DatabaseBackup) bool {
		return b.Status.StartedAt != nil && b.Status.CompletedAt != nil && last.Before(b.Status.CompletedAt) &&
			s.IsIn(&b, s.ArchivePath())
	})
}

// setRetained puts into the status what retention has done last: the last backup, and then a Job of its own.
func (s *archiveTopic) setRetained(out *v1.BackupStatus, last *v1.DatabaseBackup) {
	if last != nil && !desired.DeletesApart(s.DB) {
		out.Retention, out.DeletionRefused = last.Status.Retention, last.Status.DeletionRefused
	}
	x := s.retained
	if x == nil || x.Error != "" || out.LastRetentionAt != nil && !out.LastRetentionAt.Before(&x.at) {
		return
	}
	if x.Archive != "" && x.Archive != out.Archive || out.StoreSince != nil && x.at.Before(out.StoreSince) {
		return // another is the present by now
	}
	out.LastRetentionAt, out.Retention, out.DeletionRefused = &x.at, x.Held, x.Refused
	out.Former = looked(out.Former, freshness.Former(x.Former))
	out.Earliest, out.Windows = freshness.Moment(x.Earliest), freshness.Windows(x.Windows)
	if len(x.Keys) > 0 {
		out.Keys = freshness.Keys(x.Keys)
	}
}

// RetentionApplied is true when what is not to be kept was removed. It has no reason where nobody has tried yet.
func (s *archiveTopic) RetentionApplied(now *v1.BackupStatus) world.Verdict {
	switch {
	case now == nil:
		return world.Verdict{}
	case s.retained != nil && s.retained.Error != "":
		return world.No(v1.ReasonRetentionFailing, s.retained.Error)
	case s.retentionWaits != "":
		return world.No(v1.ReasonRetentionFailing, s.retentionWaits)
	case s.retained == nil && s.failing() && s.retentionNeeded():
		was := meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionRetentionApplied)
		return world.No(v1.ReasonRetentionFailing, was.Message) // it is being tried again
	case now.LastBackupAt == nil && now.LastRetentionAt == nil && s.retained == nil:
		return world.Verdict{}
	case now.DeletionRefused != "":
		return world.No(v1.ReasonDeletionRefused, now.DeletionRefused)
	case now.Retention != "":
		return world.No(v1.ReasonRetentionHeld, now.Retention)
	}
	return world.Yes(v1.ReasonRetentionApplied, "what spec.backup.retention does not keep is removed")
}

// retentionJob is the Job that makes room, nil where there is none.
func (s *archiveTopic) retentionJob() *batchv1.Job {
	for i := range s.Seen.Jobs {
		job := &s.Seen.Jobs[i]
		if job.Name == naming.RetentionJob(s.DB.Name) && metav1.IsControlledBy(job, s.DB) {
			return job
		}
	}
	return nil
}

// backingUp says that a backup is under way: it makes room itself, before it begins and when it has failed.
func (s *archiveTopic) backingUp() bool {
	for i := range s.Seen.Backups {
		if b := &s.Seen.Backups[i]; b.Status.StartedAt != nil && !world.Ended(b) {
			return true
		}
	}
	return false
}

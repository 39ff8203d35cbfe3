package sampledb

import (
	"context"
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/controller/removed"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// applyRetention has a Job make room in a store that is full: no backup can begin there, and so none can remove what is
// not kept any more. Its Job goes some minutes after its end, and is made again if the store is full then.
func (r *Reconciler) applyRetention(ctx context.Context, s *scope) error {
	if s.backup == nil {
		return nil
	}
	if job := s.retentionJob(); job != nil {
		return removed.Note(ctx, r.Client, removed.By{
			Archive: s.archivePath(), IDs: removedBy(lastSaid(podsOf(s.seen.backupPods, job))),
			When: "when the store was full",
		}, s.seen.backups)
	}
	if state := s.archiveState(); state == nil || state.Reason != protocol.ArchiveFull || s.backingUp() {
		return nil
	}
	if err := r.apply(ctx, s.db, desired.RetentionJob(s.db, r.Settings)); err != nil {
		return err
	}
	s.addEvent(eventMakingRoom, "the store is full: what spec.backup.retention does not keep is removed")
	return nil
}

// retentionJob is the Job that makes room, nil where there is none.
func (s *scope) retentionJob() *batchv1.Job {
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		if job.Name == naming.RetentionJob(s.db.Name) && metav1.IsControlledBy(job, s.db) {
			return job
		}
	}
	return nil
}

// backingUp says that a backup is under way: it makes room itself, before it begins and when it has failed.
func (s *scope) backingUp() bool {
	for i := range s.seen.backups {
		if b := &s.seen.backups[i]; b.Status.StartedAt != nil && !ended(b) {
			return true
		}
	}
	return false
}

// removedBy are the ids of the backups that a Pod says it has removed.
func removedBy(words string) []string {
	var result protocol.BackupResult
	if json.Unmarshal([]byte(words), &result) != nil {
		return nil // it did not come to say
	}
	return result.Removed
}

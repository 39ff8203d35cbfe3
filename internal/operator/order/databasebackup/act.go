package databasebackup

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/removed"
)

// begin makes the Job when it is the backup's turn, unless that of another backup of the SampleDB was made by then.
func (s *scope) begin(ctx context.Context, d order.Decision) (order.Decision, error) {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	job := desired.AskedAt(desired.BackupJob(s.seen.db, s.Object, s.Settings, s.Left()), s.At)
	ahead, taken, err := s.Turns.Take(ctx, s.Object, job.Name, s.At, func() error {
		if err := s.alone(ctx); err != nil {
			return err
		}
		return s.Jobs.Create(ctx, job)
	})
	var other *otherError
	switch {
	case errors.As(err, &other):
		return order.Wait(v1.ReasonWaiting, s.waitsFor("Job "+other.job, other.job)), nil
	case err != nil || taken:
		return d, err
	}
	s.ahead = ahead
	return order.Wait(v1.ReasonQueued, s.Turns.Message()), nil
}

// otherError names the Job of another backup of the SampleDB.
type otherError struct{ job string }

func (e *otherError) Error() string {
	return fmt.Sprintf("Job %s is at work in the archive", e.job)
}

// alone is an error where the Job of another backup of the SampleDB runs. A cache may not have that one yet, and two
// that run at once take each other's pieces for what a former one has left.
func (s *scope) alone(ctx context.Context) error {
	var all batchv1.JobList
	if err := s.Reader.List(ctx, &all, client.InNamespace(s.Object.Namespace), client.MatchingLabels{
		naming.LabelSampleDB: s.Object.Spec.SampleDB, naming.LabelComponent: naming.ComponentBackup,
	}); err != nil {
		return fmt.Errorf("list the Jobs of other backups: %w", err)
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.Name != s.Object.Name && !jobs.Of(other, s.seen.pods).Ended() {
			return &otherError{other.Name}
		}
	}
	return nil
}

// Waits is what a backup waits as when as many run as may: from when it was created.
func Waits(b *v1.DatabaseBackup) limits.Waiter {
	return limits.Waiter{
		Key: client.ObjectKeyFromObject(b), Since: b.CreationTimestamp.Time,
		Asked: b.Annotations[naming.AnnotationDue] == "",
	}
}

// reportRemoved tells of the backups whose data this one's retention has removed, also where it has failed itself. It
// comes before its own status is over.
func (s *scope) reportRemoved(ctx context.Context) error {
	if s.Object.Status.Archive == nil {
		return nil
	}
	for _, said := range s.said() {
		if err := removed.NoteAll(ctx, s.Client, said, removed.By{
			Archive: cmp.Or(said.Archive, s.Object.Status.Archive.Path), Store: s.Object.Status.Archive.Store,
			When: "when " + s.Object.Name + " was taken",
		}, s.seen.backups); err != nil {
			return err
		}
	}
	return nil
}

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
	"toban.dev/internal/operator/removed"
)

// act does what was decided, which is at most one thing, and returns the decision as it is then.
func (r *Reconciler) act(ctx context.Context, s *scope, d Decision) (Decision, error) {
	switch d.Action {
	case ActionCreate:
		return r.begin(ctx, s, d)
	case ActionStop:
		return d, r.jobs().Remove(ctx, s.seen.run.Job)
	case ActionNone:
	}
	return d, nil
}

// begin makes the Job when it is the backup's turn, unless that of another backup of the SampleDB was made by then.
func (r *Reconciler) begin(ctx context.Context, s *scope, d Decision) (Decision, error) {
	r.beginning.Lock()
	defer r.beginning.Unlock()
	job := desired.BackupJob(s.seen.db, s.backup, r.Settings, s.deadline().Sub(s.now))
	ahead, taken, err := r.Turns.Take(ctx, s.backup, job.Name, s.now, func() error {
		if err := r.alone(ctx, s); err != nil {
			return err
		}
		return r.jobs().Create(ctx, job)
	})
	var other *otherError
	switch {
	case errors.As(err, &other):
		return wait(v1.ReasonWaiting, other.Error()), nil
	case err != nil || taken:
		return d, err
	}
	s.ahead = ahead
	return wait(v1.ReasonQueued, r.Turns.Message()), nil
}

// otherError names the Job of another backup of the SampleDB.
type otherError struct{ job string }

func (e *otherError) Error() string {
	return fmt.Sprintf("waits for Job %s of another backup to end", e.job)
}

// alone is an error where the Job of another backup of the SampleDB runs. A cache may not have that one yet, and two
// that run at once take each other's pieces for what a former one has left.
func (r *Reconciler) alone(ctx context.Context, s *scope) error {
	var all batchv1.JobList
	if err := r.Reader.List(ctx, &all, client.InNamespace(s.backup.Namespace), client.MatchingLabels{
		naming.LabelSampleDB: s.backup.Spec.SampleDB, naming.LabelComponent: naming.ComponentBackup,
	}); err != nil {
		return fmt.Errorf("list the Jobs of other backups: %w", err)
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.Name != s.backup.Name && !jobs.Of(other, s.seen.pods).Ended() {
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

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

// reportRemoved tells of the backups whose data this one's retention has removed, also where it has failed itself. It
// comes before its own status is over.
func (r *Reconciler) reportRemoved(ctx context.Context, s *scope) error {
	if s.backup.Status.Archive == nil {
		return nil
	}
	for _, said := range s.said() {
		if err := removed.NoteAll(ctx, r.Client, said, removed.By{
			Archive: cmp.Or(said.Archive, s.backup.Status.Archive.Path), Store: s.backup.Status.Archive.Store,
			When: "when " + s.backup.Name + " was taken",
		}, s.seen.backups); err != nil {
			return err
		}
	}
	return nil
}

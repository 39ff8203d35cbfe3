package databasebackup

import (
	"context"

	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/controller/removed"
	"toban.dev/internal/desired"
)

// act does what was decided, which is at most one thing.
func (r *Reconciler) act(ctx context.Context, s *scope, d Decision) error {
	switch d.Action {
	case ActionCreate:
		job := desired.BackupJob(s.seen.db, s.backup, r.Settings, s.deadline().Sub(s.now))
		return r.jobs().Create(ctx, job)
	case ActionStop:
		return r.jobs().Remove(ctx, s.seen.run.Job)
	case ActionNone:
	}
	return nil
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

// reportRemoved tells of the backups whose data this one's retention has removed, also where it has failed itself. It
// comes before its own status is over.
func (r *Reconciler) reportRemoved(ctx context.Context, s *scope) error {
	if s.backup.Status.Archive == nil {
		return nil
	}
	return removed.Note(ctx, r.Client, removed.By{
		Archive: s.backup.Status.Archive.Path, IDs: s.removed(), When: "when " + s.backup.Name + " was taken",
	}, s.seen.backups)
}

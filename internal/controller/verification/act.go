package verification

import (
	"context"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/desired"
)

// create makes the Job.
func (r *Reconciler) create(ctx context.Context, db *v1.SampleDB, backup *v1.DatabaseBackup, asked string) error {
	job, err := desired.VerifyJob(db, backup, r.Settings, asked)
	if err != nil {
		return err
	}
	return r.jobs().Create(ctx, job)
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

package verification

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/limits"
)

// begin makes the Job when it is its turn, and returns the decision as it is then.
func (r *Reconciler) begin(
	ctx context.Context, db *v1.SampleDB, backup *v1.DatabaseBackup, v view, d decision,
) (decision, error) {
	job, err := desired.VerifyJob(db, backup, r.Settings, v.asked)
	if err != nil {
		return d, err
	}
	_, taken, err := r.Turns.Take(ctx, backup, job.Name, r.Now(), func() error { return r.Jobs().Create(ctx, job) })
	if err != nil || taken {
		return d, err
	}
	return decision{reason: v1.ReasonQueued, message: r.Turns.Message()}, nil
}

// Waits is what a verification waits as when as many run as may: from when it was due, or if somebody has asked for it,
// from when the backup was complete.
func Waits(b *v1.DatabaseBackup) limits.Waiter {
	out := limits.Waiter{Key: client.ObjectKeyFromObject(b), Since: b.CreationTimestamp.Time}
	if b.Status.CompletedAt != nil {
		out.Since = b.Status.CompletedAt.Time
	}
	if due, err := time.Parse(time.RFC3339, asked(b)); err == nil {
		out.Since = due
	}
	return out
}

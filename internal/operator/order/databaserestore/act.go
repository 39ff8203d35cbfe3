package databaserestore

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
)

// act does what was decided, which is at most one thing, and returns the decision as it is then.
func (r *Reconciler) act(ctx context.Context, s *scope, d Decision) (Decision, error) {
	switch d.Action {
	case ActionCreate:
		return d, r.begin(ctx, s)
	case ActionStop:
		return d, r.jobs().Remove(ctx, s.seen.run.Job)
	case ActionNone:
	}
	return d, nil
}

// begin makes the settings and the Job.
func (r *Reconciler) begin(ctx context.Context, s *scope) error {
	config, err := desired.BringConfigMap(s.seen.db, s.seen.bring)
	if err != nil {
		return err
	}
	job, err := desired.BringJob(s.seen.db, r.Settings, s.seen.bring, s.deadline().Sub(s.now))
	if err != nil {
		return err
	}
	err = r.Client.Create(ctx, config, client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) { // the spec it is made from does not change
		return fmt.Errorf("create ConfigMap %s: %w", config.Name, err)
	}
	return r.jobs().Create(ctx, job)
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

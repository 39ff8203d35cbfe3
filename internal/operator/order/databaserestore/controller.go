// Package databaserestore brings tables, schemas or a database back: for each DatabaseRestore it makes one Job, watches
// that to its end and reports what became of it. What it decides is a pure function of what it sees; nothing is
// remembered but in the status. It must not know how something is brought back (that is the Pod's,
// internal/work/tablerestore) nor how an object looks (internal/operator/desired).
package databaserestore

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
)

// Reconciler reconciles DatabaseRestores. All fields must be set.
type Reconciler struct {
	order.Base
	// Pods asks the Pods of DatabaseRestores.
	Pods pods.Asker
}

// scope is what one reconcile knows.
type scope struct {
	*order.Task[*v1.DatabaseRestore]
	*Reconciler
	seen observed
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error { return r.kind().Setup(manager, r.Base) }

// Reconcile brings one DatabaseRestore nearer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.kind().Reconciler(r.Base).Reconcile(ctx, request) //nolint:wrapcheck // it is the same
}

func (r *Reconciler) kind() order.Kind[*v1.DatabaseRestore] {
	return order.Kind[*v1.DatabaseRestore]{
		Name: "databaserestore", New: func() *v1.DatabaseRestore { return &v1.DatabaseRestore{} },
		Component: naming.ComponentBring, Owner: naming.BroughtBy,
		Fields: func(o *v1.DatabaseRestore) order.Fields {
			return order.Fields{
				SampleDB: o.Spec.SampleDB, Cancel: o.Spec.Cancel, Deadline: o.Spec.Deadline.Duration,
				ObservedGeneration: &o.Status.ObservedGeneration, Phase: &o.Status.Phase,
				Attempts: &o.Status.Attempts, StartedAt: &o.Status.StartedAt, CompletedAt: &o.Status.CompletedAt,
				Conditions: &o.Status.Conditions,
			}
		},
		Work: func(t *order.Task[*v1.DatabaseRestore]) order.Work[*v1.DatabaseRestore] {
			return &scope{Task: t, Reconciler: r}
		},
		Running: 3 * time.Second, // how far it is, only its Pod knows
		Tidied:  naming.Bring,
	}
}

// Shared says that nobody else writes the status.
func (s *scope) Shared() bool { return false }

// Act does what was decided, which is at most one thing.
func (s *scope) Act(ctx context.Context, d order.Decision) (order.Decision, error) {
	switch d.Action {
	case order.ActionCreate:
		return d, s.begin(ctx)
	case order.ActionStop:
		return d, s.Jobs.Remove(ctx, s.Run.Job)
	}
	return d, nil
}

// begin makes the settings and the Job.
func (s *scope) begin(ctx context.Context) error {
	config, err := desired.BringConfigMap(s.seen.db, s.seen.bring)
	if err != nil {
		return err
	}
	job, err := desired.BringJob(s.seen.db, s.Settings, s.seen.bring, s.Left())
	if err != nil {
		return err
	}
	err = s.Client.Create(ctx, config, client.FieldOwner(naming.FieldOwner))
	if err != nil && !apierrors.IsAlreadyExists(err) { // the spec it is made from does not change
		return fmt.Errorf("create ConfigMap %s: %w", config.Name, err)
	}
	return s.Jobs.Create(ctx, job)
}

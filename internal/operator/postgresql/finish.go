package postgresql

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// finish is what remains of a PostgreSQL that is being deleted. A server of its own goes with it,
// by its own deletionPolicy.
func (r *Reconciler) finish(ctx context.Context, s *scope) (reconcile.Result, error) {
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if d := r.dropped(ctx, s); d.Reason != "" {
		return reconcile.Result{RequeueAfter: pauseWorking}, r.report(ctx, s, d)
	}
	r.forget(s.pg.UID)
	return reconcile.Result{}, r.writer().LetGo(ctx, s.pg)
}

// dropped drops the database where that is asked for. It is no decision once nothing is left to wait for.
func (r *Reconciler) dropped(ctx context.Context, s *scope) Decision {
	if s.pg.Spec.Server == nil || s.pg.Spec.DeletionPolicy != v1.DeletionDelete {
		return Decision{}
	}
	switch server := s.server(); server.state {
	case serverMissing, serverDenied: // the data went with it, or is out of reach by somebody's will
		return Decision{}
	case serverBusy, serverStopped, serverHeld:
		if s.seen.db.DeletionTimestamp != nil {
			return Decision{}
		}
		return wait(pgv1.ReasonDeleting, "the database is to be dropped (spec.deletionPolicy: Delete): "+server.message)
	case serverReady:
	}
	switch goes, err := r.writer().KindGoes(ctx, naming.DefinitionPostgreSQL); {
	case apierrors.IsForbidden(err): // and it will not become known by waiting
		r.Events.Eventf(s.pg, nil, corev1.EventTypeNormal, eventDataKept, eventActionReported,
			"the database stays, though spec.deletionPolicy is Delete: the operator may not read the "+
				"CustomResourceDefinition %s, so it can't know whether the PostgreSQL is deleted with its kind",
			naming.DefinitionPostgreSQL)
		return Decision{}
	case err != nil:
		return wait(pgv1.ReasonDeleting,
			"it is not known yet whether to drop the database (spec.deletionPolicy: Delete): "+err.Error())
	case goes: // and takes all PostgreSQLs with it, which is no wish about this one
		return Decision{}
	}
	switch a := r.ask(ctx, s, true); {
	case a.err != nil:
		return wait(pgv1.ReasonDeleting, "the database could not be dropped now: "+a.err.Error())
	case a.result.Refusal != nil:
		return wait(pgv1.ReasonDeleting, a.result.Refusal.Message)
	}
	return Decision{}
}

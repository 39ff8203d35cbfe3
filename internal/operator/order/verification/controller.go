// Package verification proves backups: a DatabaseBackup that is complete and is to be verified gets a Job, whose Pod
// restores it into a scratch volume, checks it and asks it questions. What it finds goes into the status. It must not
// know how a backup is restored (that is internal/archive/restore's) nor how the Pod looks (that is
// internal/operator/desired's).
package verification

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
)

// Reconciler reconciles DatabaseBackups that are complete. All fields must be set.
type Reconciler struct {
	order.Base
	// Pods asks the Pods of verifications.
	Pods pods.Asker
	// Turns bounds how many verifications run at once; without it there is no bound.
	Turns *limits.Turns
}

// Pauses until a verification is looked at again when nothing happens before.
const (
	pauseRunning = 10 * time.Second // how far it is, only its Pod knows
	pauseWaiting = time.Minute      // whom it waits for is not watched from here
)

// Reconcile brings the verification of one DatabaseBackup nearer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backup := &v1.DatabaseBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, backup); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Shard.Has(backup.Namespace, backup.Spec.SampleDB) {
		return reconcile.Result{}, nil
	}
	v, db, err := r.observe(ctx, backup)
	if err != nil {
		return reconcile.Result{}, err
	}
	d := decide(v)
	if d.create {
		if d, err = r.begin(ctx, db, backup, v, d); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.report(ctx, backup, v, d); err != nil || d.reason == "" || d.over {
		return reconcile.Result{}, err
	}
	if v.job == jobNone && !d.create {
		return reconcile.Result{RequeueAfter: pauseWaiting}, nil
	}
	return reconcile.Result{RequeueAfter: pauseRunning}, nil
}

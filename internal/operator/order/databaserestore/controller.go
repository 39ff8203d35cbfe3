// Package databaserestore brings tables, schemas or a database back: for each DatabaseRestore it makes one Job, watches
// that to its end and reports what became of it. What it decides is a pure function of what it sees; nothing is
// remembered but in the status. It must not know how something is brought back (that is the Pod's,
// internal/work/tablerestore) nor how an object looks (internal/operator/desired).
package databaserestore

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/shards"
)

// Reconciler reconciles DatabaseRestores. All fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Pods asks the Pods of DatabaseRestores.
	Pods pods.Asker
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time
}

// pauseRunning is how long until it is looked at again while it runs: how far it is, only its Pod knows.
const pauseRunning = 3 * time.Second

// scope is what one reconcile knows.
type scope struct {
	// restore is the DatabaseRestore as the cache has it. Nobody changes it.
	restore *v1.DatabaseRestore
	now     time.Time
	seen    observed
}

// Reconcile brings one DatabaseRestore nearer to its end. It has no finalizer: its Job goes with it by its owner
// reference.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	restore := &v1.DatabaseRestore{}
	if err := r.Client.Get(ctx, request.NamespacedName, restore); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if restore.DeletionTimestamp != nil || !r.Shard.Has(restore.Namespace, restore.Spec.SampleDB) {
		return reconcile.Result{}, nil
	}
	s := &scope{restore: restore, now: r.Now()}
	if over := restore.Status.CompletedAt; over != nil { // what is over stays as it is
		left, err := r.jobs().Tidy(ctx, restore, naming.Bring(restore.Name), over.Time, s.now)
		return reconcile.Result{RequeueAfter: left}, err
	}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	d := decide(s.view())
	d, err := r.act(ctx, s, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.pause(d)}, nil
}

// pause is how long until it is looked at again.
func (s *scope) pause(d Decision) time.Duration {
	if d.Over {
		return jobs.Kept
	}
	return order.Pause(d.Reason, pauseRunning, s.deadline().Sub(s.now))
}

// deadline is when it must be complete.
func (s *scope) deadline() time.Time {
	return s.restore.CreationTimestamp.Add(s.restore.Spec.Deadline.Duration)
}

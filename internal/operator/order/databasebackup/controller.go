// Package databasebackup takes backups: for each DatabaseBackup it makes one Job when its turn has come,
// watches that to its end and reports what became of it. What it decides is a pure function
// of what it sees; nothing is remembered but in the status. It must not know how a backup is taken (that is the Pod's,
// internal/backup) nor how an object looks (internal/operator/desired), nor when one is due (the controller of
// SampleDBs).
package databasebackup

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/shards"
)

// Reconciler reconciles DatabaseBackups. All fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Pods asks the Pods of backups.
	Pods pods.Asker
	// Cutter tells the Pods of backups by snapshots that these are cut.
	Cutter Cutter
	// Credentials derives passwords, keys and certificates.
	Credentials *credentials.Store
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Turns bounds how many backups run at once; without it there is no bound.
	Turns *limits.Turns
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time

	// beginning lets one backup begin at a time.
	beginning sync.Mutex
}

// Pauses until a backup is looked at again when nothing happens before.
const (
	pauseRunning = 3 * time.Second  // how far it is, only its Pod knows
	pauseWaiting = 10 * time.Second // whom it waits for is not watched from here
	pauseQueued  = time.Minute      // at most, where many wait before it
)

// scope is what one reconcile knows.
type scope struct {
	// backup is the DatabaseBackup as the cache has it. Nobody changes it.
	backup *v1.DatabaseBackup
	store  *credentials.Store
	now    time.Time
	seen   observed
	// ahead is how many backups of all SampleDBs wait before it.
	ahead int
}

// Reconcile brings one DatabaseBackup nearer to its end. It has no finalizer: its Job goes with it by its owner
// reference, and what lies in the archive is for the retention.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backup := &v1.DatabaseBackup{}
	if err := r.Client.Get(ctx, request.NamespacedName, backup); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the DatabaseBackup: %w", err)
	}
	if backup.DeletionTimestamp != nil || backup.Status.CompletedAt != nil {
		return reconcile.Result{}, nil // what is over stays as it is
	}
	if !r.Shard.Has(backup.Namespace, backup.Spec.SampleDB) {
		return reconcile.Result{}, nil
	}
	s := &scope{backup: backup, store: r.Credentials, now: r.Now()}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	d := decide(s.view())
	d, err := r.act(ctx, s, d)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := r.actSnapshot(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.reportRemoved(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.pause(s, d)}, nil
}

// pause is how long until the backup is looked at again, 0 when it is over.
func (r *Reconciler) pause(s *scope, d Decision) time.Duration {
	pause := pauseWaiting
	switch {
	case d.Over:
		return 0
	case d.Reason == v1.ReasonRunning:
		pause = pauseRunning
	case d.Reason == v1.ReasonQueued:
		pause = r.Turns.Pause(s.ahead, pauseWaiting, pauseQueued)
	}
	return max(min(pause, s.deadline().Sub(s.now)), time.Second)
}

// deadline is when the backup must be complete.
func (s *scope) deadline() time.Time {
	return s.backup.CreationTimestamp.Add(s.backup.Spec.Deadline.Duration)
}

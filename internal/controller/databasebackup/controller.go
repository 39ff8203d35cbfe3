// Package databasebackup takes backups: for each DatabaseBackup it makes one Job when its turn has come,
// watches that to its end and reports what became of it. What it decides is a pure function
// of what it sees; nothing is remembered but in the status. It must not know how a backup is taken (that is the Pod's,
// internal/backup) nor how an object looks (internal/desired), nor when one is due (the controller of SampleDBs).
package databasebackup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/controller/removed"
	"toban.dev/internal/controller/written"
	"toban.dev/internal/credentials"
	"toban.dev/internal/desired"
)

// Reconciler reconciles DatabaseBackups. All fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Pods asks the Pods of backups.
	Pods pods.Asker
	// Credentials derives passwords, keys and certificates.
	Credentials *credentials.Store
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Now is the clock.
	Now func() time.Time
}

// Pauses until a backup is looked at again when nothing happens before.
const (
	pauseRunning = 3 * time.Second  // how far it is, only its Pod knows
	pauseWaiting = 10 * time.Second // whom it waits for is not watched from here
)

// scope is what one reconcile knows.
type scope struct {
	// backup is the DatabaseBackup as the cache has it. Nobody changes it.
	backup *v1.DatabaseBackup
	store  *credentials.Store
	now    time.Time
	seen   observed
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
	s := &scope{backup: backup, store: r.Credentials, now: r.Now()}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	d := decide(s.view())
	if err := r.act(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.reportRemoved(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.pause(d)}, nil
}

// pause is how long until the backup is looked at again, 0 when it is over.
func (s *scope) pause(d Decision) time.Duration {
	pause := pauseWaiting
	switch {
	case d.Over:
		return 0
	case d.Reason == v1.ReasonRunning:
		pause = pauseRunning
	}
	return max(min(pause, s.deadline().Sub(s.now)), time.Second)
}

// deadline is when the backup must be complete.
func (s *scope) deadline() time.Time {
	return s.backup.CreationTimestamp.Add(s.backup.Spec.Deadline.Duration)
}

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

// report writes the status where it has changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s *scope, d Decision) error {
	status := s.status(d)
	if equality.Semantic.DeepEqual(s.backup.Status, status) {
		return nil
	}
	changed := s.backup.DeepCopy()
	changed.Status = status
	if there, err := written.Shared(ctx, r.Client, s.backup, changed); err != nil || !there {
		return err
	}
	for _, e := range changes(s.backup.Status, status) {
		log.FromContext(ctx).Info("the state changed", "reason", e.reason, "message", e.message)
		r.Events.Eventf(s.backup, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
	return nil
}

// Package databaserestore brings tables, schemas or a database back: for each DatabaseRestore it makes one Job, watches
// that to its end and reports what became of it. What it decides is a pure function of what it sees; nothing is
// remembered but in the status. It must not know how something is brought back (that is the Pod's, internal/bring) nor
// how an object looks (internal/desired).
package databaserestore

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/desired"
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
	// Now is the clock.
	Now func() time.Time
}

// Pauses until a DatabaseRestore is looked at again when nothing happens before.
const (
	pauseRunning = 3 * time.Second  // how far it is, only its Pod knows
	pauseWaiting = 10 * time.Second // what it waits for is not watched from here
)

// jobKept is for how long the Job stays after its end, for its log. Its scratch volume stays with it.
const jobKept = 10 * time.Minute

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
	if restore.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	s := &scope{restore: restore, now: r.Now()}
	if restore.Status.CompletedAt != nil { // what is over stays as it is
		return r.tidy(ctx, s)
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

// tidy removes the Job of what is over, after a while. By itself it does not go: while nobody has seen how it has
// ended, another one would be made.
func (r *Reconciler) tidy(ctx context.Context, s *scope) (reconcile.Result, error) {
	if left := s.restore.Status.CompletedAt.Add(jobKept).Sub(s.now); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	if err := r.observeJob(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if s.seen.run.Job == nil || s.seen.foreign {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, r.jobs().Remove(ctx, s.seen.run.Job)
}

// pause is how long until it is looked at again.
func (s *scope) pause(d Decision) time.Duration {
	switch {
	case d.Over:
		return jobKept
	case d.Reason == v1.ReasonRunning:
		return pauseRunning
	}
	return max(min(pauseWaiting, s.deadline().Sub(s.now)), time.Second)
}

// deadline is when it must be complete.
func (s *scope) deadline() time.Time {
	return s.restore.CreationTimestamp.Add(s.restore.Spec.Deadline.Duration)
}

// Package sampledb makes SampleDBs real: it observes what there is, tells the
// agents what the spec wants, makes what is missing, and reports what it saw.
// A reconcile is a row of phases over one scope, then one status and at
// most one patch of it; at rest it writes nothing. It must not know how a
// PostgreSQL server is run (that is the agents') nor how an object looks
// (that is internal/desired's).
package sampledb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/controller/written"
	"toban.dev/internal/credentials"
	"toban.dev/internal/desired"
	"toban.dev/internal/metrics"
)

// Reconciler reconciles SampleDBs. All fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Agents talks to the instances.
	Agents Agents
	// Pods asks the Pods of restores.
	Pods pods.Asker
	// Credentials derives passwords, keys and certificates.
	Credentials *credentials.Store
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Metrics counts and measures.
	Metrics *metrics.Metrics
	// Now is the clock.
	Now func() time.Time

	attempts attempts
	statuses written.Statuses[v1.SampleDBStatus]
}

// phases are the steps of a reconcile, in their order: what Pods mount is there
// before them, and nothing waits for anything else.
func (r *Reconciler) phases() []phase {
	return []phase{
		{"finalizer", r.claimFinalizer},
		{"witness", r.applyWitness},
		{"config", r.applyConfig},
		{"switchover", r.applySwitchover},
		{"secrets", r.applySecrets},
		{"password", r.applyPassword},
		{"access", r.applyAccess},
		{"storage", r.applyStorage},
		{"restore", r.applyRestore},
		{"instances", r.applyInstances},
		{"network", r.applyNetwork},
		{"init", r.applyInitial},
		{"budget", r.applyBudget},
		{"restarts", r.applyRestarts},
		{"archive", r.applyArchive},
		{"retention", r.applyRetention},
		{"backups", r.applyBackups},
	}
}

// Reconcile brings one SampleDB nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	db := &v1.SampleDB{}
	if err := r.Client.Get(ctx, request.NamespacedName, db); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.Forget(request.Namespace, request.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the SampleDB: %w", err)
	}
	db.Status = r.statuses.Latest(db, db.Status)
	s := &scope{db: db, backup: desired.Backup(db), now: r.Now()}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if db.DeletionTimestamp != nil {
		return r.finish(ctx, s)
	}
	err := r.run(ctx, s, r.phases())
	if reported := r.report(ctx, s); reported != nil {
		err = errors.Join(err, reported)
	}
	if apierrors.IsConflict(err) {
		// What was seen was out of date; the newer version is on its way here.
		return reconcile.Result{RequeueAfter: pauseConflict}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.pause()}, nil
}

// run does the phases up to the first that fails. A problem that the user can
// mend is no error: it is kept in the scope for the status.
func (r *Reconciler) run(ctx context.Context, s *scope, phases []phase) error {
	for _, p := range phases {
		err := p.run(ctx, s)
		if errors.As(err, &s.problem) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// finish is what remains of a SampleDB that is being deleted.
func (r *Reconciler) finish(ctx context.Context, s *scope) (reconcile.Result, error) {
	gone, err := r.cleanUp(ctx, s)
	if err == nil && gone {
		r.Agents.Forget(s.db.UID)
		r.attempts.forget(s.db.UID)
		r.statuses.Forget(s.db.UID)
		if err = r.release(ctx, s); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: pauseConflict}, nil
		}
		return reconcile.Result{}, err
	}
	if errors.As(err, &s.problem) {
		err = nil
	}
	if reported := r.report(ctx, s); reported != nil {
		err = errors.Join(err, reported)
	}
	return reconcile.Result{RequeueAfter: 5 * time.Second}, err
}

// report writes the status where it has changed, and then the events.
func (r *Reconciler) report(ctx context.Context, s *scope) error {
	status := s.status()
	r.Metrics.Observe(s.db, status)
	status.Backup = archiveNews(s.db.Status, status, s.now)
	if !equality.Semantic.DeepEqual(s.db.Status, status) {
		changed := s.db.DeepCopy()
		changed.Status = status
		if there, err := written.Alone(ctx, r.Client, s.db, changed); err != nil || !there {
			return err
		}
		r.statuses.Note(changed, changed.Status)
		r.logChange(ctx, s.db.Status, status)
		s.events = append(s.events, changes(s.db.Status, status)...)
	}
	for _, e := range s.events {
		r.Events.Eventf(s.db, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
	return nil
}

func (r *Reconciler) logChange(ctx context.Context, old, now v1.SampleDBStatus) {
	was, is := meta.FindStatusCondition(old.Conditions,
		v1.ConditionReady), meta.FindStatusCondition(now.Conditions, v1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("the state changed", "phase", now.Phase, "ready", now.Ready, "primary", now.Primary,
		"reason", is.Reason, "message", is.Message)
}

// Pauses until a SampleDB is looked at again when nothing happens before. Most
// changes are watched; what is asked for again is what only agents know.
const (
	pauseConflict = 100 * time.Millisecond
	pauseStarting = time.Second
	pauseWorking  = 2 * time.Second
	pauseStuck    = 10 * time.Second
	pauseResting  = 5 * time.Minute
	// pauseArchiving is how old what the status says of the archive may be: only the
	// agents know it, and that it goes on must not be believed for long.
	pauseArchiving = 30 * time.Second

	// stuckAfter is when what is under way is looked at less often.
	stuckAfter = 2 * time.Minute
)

// pause is how long until the SampleDB is looked at again.
func (s *scope) pause() time.Duration {
	pause := s.untilChange()
	for _, next := range []time.Time{s.planned.next, s.verifiesNext} {
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(s.now), 0)+time.Second)
		}
	}
	return pause
}

// untilChange is after how long something may be different that nobody tells.
func (s *scope) untilChange() time.Duration {
	state := s.status()
	c := meta.FindStatusCondition(state.Conditions, v1.ConditionReady)
	switch {
	case s.asked() || s.inPlace() || s.rotates():
		return pauseWorking
	case state.Phase == phaseReady && s.backup != nil &&
		!meta.IsStatusConditionTrue(state.Conditions, v1.ConditionArchiving):
		return pauseStuck
	case state.Phase == phaseReady && s.backup != nil:
		return pauseArchiving + rand.N(pauseArchiving) //nolint:gosec // no secret
	case state.Phase == phaseReady:
		// Spread, so that a thousand that were found at once are not asked at once.
		return pauseResting + rand.N(pauseResting) //nolint:gosec // no secret
	case s.problem != nil:
		return s.problem.wait
	case s.now.Sub(c.LastTransitionTime.Time) > stuckAfter:
		return pauseStuck
	case s.starting():
		return pauseStarting
	}
	return pauseWorking
}

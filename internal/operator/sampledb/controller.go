// Package sampledb makes SampleDBs real: it observes what there is, tells the
// agents what the spec wants, makes what is missing, and reports what it saw.
// A reconcile is a row of phases over one scope, then one status and at
// most one patch of it; at rest it writes nothing. It must not know how a
// PostgreSQL server is run (that is the agents') nor how an object looks
// (that is internal/operator/desired's).
package sampledb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/shards"
)

// Reconciler reconciles SampleDBs. All fields must be set, unless they say what nil is.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Agents talks to the instances.
	Agents Agents
	// Programs gives agents the operator's program; nil where they keep theirs until their Pods are replaced.
	Programs AgentPrograms
	// Pods asks the Pods of restores and upgrades.
	Pods Pods
	// Poolers asks the poolers; nil where they are not asked, and no database goes to sleep.
	Poolers Poolers
	// Credentials derives passwords, keys and certificates.
	Credentials *credentials.Store
	// Settings are the operator's.
	Settings desired.Settings
	// Copies bounds how many archives are copied into second stores at once.
	Copies *limits.Places
	// Events takes the events.
	Events events.EventRecorder
	// Metrics counts and measures.
	Metrics *metrics.Metrics
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time
	// NoClasses says that StorageClasses can't be read.
	NoClasses bool

	// giving is held while an agent is given a program: one at a time.
	giving sync.Mutex

	attempts   attempts
	leases     leases
	unanswered unanswered
	machines   paced
	vain       paced
	statuses   freshness.Statuses[v1.SampleDBStatus]
	identities freshness.Identities
}

// phases are the steps of a reconcile, in their order: what Pods mount is there before them.
func (r *Reconciler) phases() []phase {
	return []phase{
		{"finalizer", r.claimFinalizer, gates},
		{"stop windows", r.applyStopWindows, apart},
		{"sleep", r.applySleep, apart},
		{"stop", r.applyStop, gates},
		{"witness", r.applyWitness, gates},
		{"config", r.applyConfig, gates},
		{"switchover", r.applySwitchover, gates},
		{"secrets", r.applySecrets, gates},
		{"password", r.applyPassword, apart},
		{"authority", r.applyAuthority, apart},
		{"access", r.applyAccess, gates},
		{"storage", r.applyStorage, gates},
		{"restore", r.applyRestore, gates},
		{"upgrade", r.applyUpgrade, gates},
		{"rehearsal", r.applyRehearsal, apart},
		{"readers", r.applyReaders, apart},
		{"pooler", r.applyPooler, apart},
		{"instances", r.applyInstances, gates},
		{"network", r.applyNetwork, apart},
		{"init", r.applyInitial, gates},
		{"budget", r.applyBudget, apart},
		{"restart", r.applyRestart, gates},
		{"restarts", r.applyRestarts, gates},
		{"volumes", r.applyAnew, work},
		{"agents", r.applyAgents, work},
		{"archive", r.applyArchive, apart},
		{"second store", r.applyCopy, work},
		{"retention", r.applyRetention, work},
		{"backups", r.applyBackups, work},
		{"image", r.applyImage, work},
		{"update", r.applyUpdate, work},
		{"finish", r.applyFinish, work},
		{"preferred primary", r.applyPreferred, work},
		{"drills", r.applyDrills, work},
	}
}

// Reconcile brings one SampleDB nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Shard.Has(request.Namespace, request.Name) {
		return reconcile.Result{}, nil
	}
	db := &v1.SampleDB{}
	if err := r.Client.Get(ctx, request.NamespacedName, db); err != nil {
		if apierrors.IsNotFound(err) {
			r.Metrics.Forget(request.Namespace, request.Name)
			r.forget(r.identities.Leave(request.NamespacedName))
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the SampleDB: %w", err)
	}
	r.forget(r.identities.Meet(db))
	db.Status = r.statuses.Latest(db, db.Status)
	s := &scope{db: db, backup: desired.Backup(db), settings: r.Settings, now: r.Now()}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if s.seen.doubted {
		return reconcile.Result{RequeueAfter: pauseDoubted}, nil
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

// run does the phases. A problem that the user can mend is no error: the first one is kept in the scope for the status.
func (r *Reconciler) run(ctx context.Context, s *scope, phases []phase) error {
	var failed error
	for _, p := range phases {
		if s.blocked && !s.goesOn(p) || p.kind == work && s.holdsWork() {
			continue
		}
		err := p.run(ctx, s)
		if err == nil {
			continue
		}
		var found *problem
		switch {
		case !errors.As(err, &found):
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		case s.problem == nil:
			s.problem = found
		}
		s.blocked = s.blocked || p.kind == gates
	}
	return failed
}

// goesOn says that a phase is done though one before it has failed.
func (s *scope) goesOn(p phase) bool {
	return p.kind != gates && s.primary() != "" && !s.inPlace() && !s.upgrade.Closed()
}

// finish is what remains of a SampleDB that is being deleted.
func (r *Reconciler) finish(ctx context.Context, s *scope) (reconcile.Result, error) {
	gone, err := r.cleanUp(ctx, s)
	if err == nil && gone {
		r.forget(s.db.UID)
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

// forget drops what is kept of a SampleDB that is gone, "" for none.
func (r *Reconciler) forget(uid types.UID) {
	if uid == "" {
		return
	}
	r.Agents.Forget(uid)
	r.attempts.forget(uid)
	r.leases.forget(uid)
	r.unanswered.forget(uid)
	r.machines.forget(uid)
	r.vain.forget(uid)
	r.statuses.Forget(uid)
}

// Pauses until a SampleDB is looked at again when nothing happens before. Most
// changes are watched; what is asked for again is what only agents know.
const (
	pauseConflict = 100 * time.Millisecond
	pauseStarting = time.Second
	// pauseShort is while no client is let in.
	pauseShort   = 200 * time.Millisecond
	pauseWorking = 2 * time.Second
	pauseStuck   = 10 * time.Second
	pauseResting = 5 * time.Minute
	// pauseArchiving is how old what the status says of the archive may be: only the
	// agents know it, and that it goes on must not be believed for long.
	pauseArchiving = 30 * time.Second

	// stuckAfter is when what is under way is looked at less often.
	stuckAfter = 2 * time.Minute
	// pauseStuckLong is for what has been stuck for long, or waits for something of which nobody tells.
	pauseStuckLong = 30 * time.Second
)

// pause is how long until the SampleDB is looked at again.
func (s *scope) pause() time.Duration {
	pause := s.untilChange()
	if s.pulling() || s.finishing() || s.rehearsing() {
		pause = min(pause, pauseStuck)
	}
	if s.upgrade.Closed() {
		pause = min(pause, pauseShort)
	}
	if s.changesSides() {
		pause = min(pause, pauseShort/2)
	}
	if s.secretsWait() {
		pause = min(pause, pauseWorking)
	}
	pause = min(pause, s.untilShort(), s.readersPause())
	for _, next := range []time.Time{
		s.planned.next, s.verifiesNext, s.authorityNext, s.updateNext, s.upgradeNext, s.finishNext, s.agentsNext,
		s.stopPlan.next, s.sleepNext, s.preferredNext, s.anewNext, s.drillPlanned.next,
	} {
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(s.now), 0)+time.Second)
		}
	}
	return pause
}

// untilChange is after how long something may be different that nobody tells.
func (s *scope) untilChange() time.Duration {
	state := s.reported
	age := s.now.Sub(meta.FindStatusCondition(state.Conditions, v1.ConditionReady).LastTransitionTime.Time)
	switch {
	case s.stop != nil:
		return s.stopPause()
	case s.acts():
		return pauseWorking
	case state.Phase == phaseReady && s.backup != nil &&
		!meta.IsStatusConditionTrue(state.Conditions, v1.ConditionArchiving):
		return pauseStuck
	case state.Phase == phaseReady && (s.backup != nil || s.collations() == nil || s.watchesAgents(state)):
		// A new primary says a moment after it leads what it has found in the databases. Of volumes that grow by
		// themselves, and whether a trouble with volumes or machines is over, only the agents know.
		return pauseArchiving + rand.N(pauseArchiving) //nolint:gosec // no secret
	case state.Phase == phaseReady:
		// Spread, so that a thousand that were found at once are not asked at once.
		return pauseResting + rand.N(pauseResting) //nolint:gosec // no secret
	case s.problem != nil && s.blocked:
		return s.problem.wait
	case s.unreached():
		return s.unreachedPause(age)
	case age > stuckAfter:
		return min(max(age/12, pauseStuck), pauseStuckLong)
	case s.starting():
		return pauseStarting
	}
	return pauseWorking
}

// stopPause is until a SampleDB is looked at again that is stopped, or starts after that.
func (s *scope) stopPause() time.Duration {
	switch s.stop.Step {
	case v1.StopStopped:
		if s.stop.Sleeps() { // clients may wait though nobody tells
			return pauseArchiving + rand.N(pauseArchiving) //nolint:gosec // no secret
		}
		return pauseResting + rand.N(pauseResting) //nolint:gosec // no secret
	case v1.StopClosing, v1.StopProving:
		return pauseShort
	case v1.StopWaiting:
		if s.stop.Sleeps() {
			return pauseShort // clients are held
		}
		return pauseWorking
	}
	return pauseStarting
}

// acts says that something was asked for, or is under way, that takes some steps.
func (s *scope) acts() bool {
	return s.asked() || s.restartAsked() || s.inPlace() || s.rotates() || s.changesAuthority() ||
		(s.upgrading() || s.upgrade.HasSides()) && !s.restsOnGreen() ||
		s.anew.moves()
}

// unreached says that no Pod of the SampleDB can be asked for anything: what changes is watched.
func (s *scope) unreached() bool {
	for _, pod := range s.seen.pods {
		if reachable(pod) {
			return false
		}
	}
	return !slices.ContainsFunc(s.seen.restorePods, func(p corev1.Pod) bool {
		return p.Status.PodIP != "" && !pods.Ended(&p)
	})
}

// unreachedPause is until a SampleDB is looked at again whose Pods can't be asked: the longer that has been so, the
// longer. A Pod that has a node may wait for a Secret that somebody has deleted, of which nobody tells; and why a Pod
// is not even made is in an event, which is not watched.
func (s *scope) unreachedPause(age time.Duration) time.Duration {
	longest := pauseResting
	for _, pod := range s.seen.pods {
		if pod.Spec.NodeName != "" {
			longest = pauseStuckLong
		}
	}
	pause := min(max(age/4, pauseStarting), longest)
	return pause + rand.N(pause/4) //nolint:gosec // no secret
}

// watchesAgents says that it matters soon how full the volumes are, or how late things come on the machines.
func (s *scope) watchesAgents(state v1.SampleDBStatus) bool {
	return s.db.Spec.Storage.Grow != nil || meta.IsStatusConditionFalse(state.Conditions, v1.ConditionHasRoom) ||
		meta.IsStatusConditionFalse(state.Conditions, v1.ConditionOnTime)
}

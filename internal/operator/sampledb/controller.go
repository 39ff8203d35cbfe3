// Package sampledb makes SampleDBs real: it observes what there is, tells the agents what the spec wants, makes what is
// missing, and reports what it saw. What is done is divided into topics (scope.go has them all), each with its own
// fields and methods over one world (world.go), which all read. A reconcile is a row of phases of these topics, then
// one status and at most one patch of it; at rest it writes nothing. It must not know how a PostgreSQL server is run
// (that is the agents') nor how an object looks (that is internal/operator/desired's).
package sampledb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

	memory     memory
	statuses   freshness.Statuses[v1.SampleDBStatus]
	identities freshness.Identities
}

// phases are the steps of a reconcile, in their order: what Pods mount is there before them.
func (s *scope) phases() []phase {
	return []phase{
		{"finalizer", s.claimFinalizer, gates},
		{"stop windows", s.applyStopWindows, apart},
		{"sleep", s.applySleep, apart},
		{"stop", s.applyStop, gates},
		{"witness", s.applyWitness, gates},
		{"config", s.applyConfig, gates},
		{"switchover", s.applySwitchover, gates},
		{"secrets", s.applySecrets, gates},
		{"password", s.applyPassword, apart},
		{"authority", s.applyAuthority, apart},
		{"access", s.applyAccess, gates},
		{"storage", s.applyStorage, gates},
		{"restore", s.applyRestore, gates},
		{"upgrade", s.applyUpgrade, gates},
		{"rehearsal", s.applyRehearsal, apart},
		{"readers", s.applyReaders, apart},
		{"pooler", s.applyPooler, apart},
		{"instances", s.applyInstances, gates},
		{"network", s.applyNetwork, apart},
		{"init", s.applyInitial, gates},
		{"budget", s.applyBudget, apart},
		{"restart", s.applyRestart, gates},
		{"restarts", s.applyRestarts, gates},
		{"volumes", s.applyReplacing, work},
		{"agents", s.applyAgents, work},
		{"archive", s.applyArchive, apart},
		{"second store", s.applyCopy, work},
		{"retention", s.applyRetention, work},
		{"backups", s.applyBackups, work},
		{"image", s.applyImage, work},
		{"update", s.applyUpdate, work},
		{"finish", s.applyFinish, work},
		{"preferred primary", s.applyPreferred, work},
		{"drills", s.applyDrills, work},
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
	s := newScope(newWorld(&core{
		db: db, backup: desired.Backup(db), settings: r.Settings, now: r.Now(),
	}), r.effects())
	if err := s.observe(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if s.seen.doubted {
		return reconcile.Result{RequeueAfter: pauseDoubted}, nil
	}
	if db.DeletionTimestamp != nil {
		return r.finish(ctx, s)
	}
	err := s.run(ctx, s.phases())
	if reported := s.report(ctx); reported != nil {
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

// effects are what its reconciles act with.
func (r *Reconciler) effects() *effects {
	return &effects{
		Client: r.Client, Reader: r.Reader, Agents: r.Agents, Programs: r.Programs, Pods: r.Pods, Poolers: r.Poolers,
		Credentials: r.Credentials, Settings: r.Settings, Copies: r.Copies, Metrics: r.Metrics, Events: r.Events,
		NoClasses: r.NoClasses, statuses: &r.statuses, memory: &r.memory,
	}
}

// run does the phases. A problem that the user can mend is no error: the first one is kept in the scope for the status.
func (s *scope) run(ctx context.Context, phases []phase) error {
	var failed error
	for _, p := range phases {
		if s.blocked && !s.goesOn(p) || p.kind == work && s.holdsWork() {
			continue
		}
		err := p.run(ctx)
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
	gone, err := s.cleanUp(ctx)
	if err == nil && gone {
		r.forget(s.db.UID)
		if err = s.release(ctx); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: pauseConflict}, nil
		}
		return reconcile.Result{}, err
	}
	if errors.As(err, &s.problem) {
		err = nil
	}
	if reported := s.report(ctx); reported != nil {
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
	r.memory.attempts.forget(uid)
	r.memory.leases.forget(uid)
	r.memory.unanswered.forget(uid)
	r.memory.pacedMachines.forget(uid)
	r.memory.pacedVain.forget(uid)
	r.memory.leaderless.forget(uid)
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
		s.stopPlan.next, s.sleepNext, s.preferredNext, s.replacingNext, s.drillPlanned.next,
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
		s.replacing.moves()
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

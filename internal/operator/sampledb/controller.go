// Package sampledb makes SampleDBs real: it observes what there is, tells the agents what the spec wants, makes what is
// missing, and reports what it saw. What is done is divided into topics, in folders (scope.go has them all), each with
// its own fields and methods over one world (package world), which all read. A reconcile is a row of phases of these
// topics, then one status and at most one patch of it; at rest it writes nothing. It must not know how a PostgreSQL
// server is run (that is the agents') nor how an object looks (that is internal/operator/desired's).
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
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/shards"
)

// Reconciler reconciles SampleDBs. All fields must be set, unless they say what nil is.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Agents talks to the instances.
	Agents world.Agents
	// Programs gives agents the operator's program; nil where they keep theirs until their Pods are replaced.
	Programs world.AgentPrograms
	// Pods asks the Pods of restores and upgrades.
	Pods world.Pods
	// Poolers asks the poolers; nil where they are not asked, and no database goes to sleep.
	Poolers world.Poolers
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

	memory     world.Memory
	statuses   freshness.Statuses[v1.SampleDBStatus]
	identities freshness.Identities
}

// phases are the steps of a reconcile, in their order: what Pods mount is there before them.
func (s *scope) phases() []phase {
	return s.withAnnexes([]phase{
		{"finalizer", s.claimFinalizer, gates},
		{"stop windows", s.ApplyStopWindows, apart},
		{"sleep", s.ApplySleep, apart},
		{"stop", s.ApplyStop, gates},
		{"witness", s.ApplyWitness, gates},
		{"config", s.ApplyConfig, gates},
		{"switchover", s.ApplySwitchover, gates},
		{"roles", s.ApplyRoles, apart},
		{"secrets", s.ApplySecrets, gates},
		{"password", s.ApplyPassword, apart},
		{"authority", s.ApplyAuthority, apart},
		{"access", s.applyAccess, gates},
		{"storage", s.ApplyStorage, gates},
		{"restore", s.ApplyRestore, gates},
		{"readers", s.ApplyReaders, apart},
		{"pooler", s.ApplyPooler, apart},
		{"instances", s.ApplyInstances, gates},
		{"network", s.applyNetwork, apart},
		{"init", s.ApplyInitial, gates},
		{"budget", s.applyBudget, apart},
		{"rollout restart", s.ApplyRolloutRestart, apart},
		{"restart", s.ApplyRestart, gates},
		{"restarts", s.ApplyRestarts, gates},
		{"volumes", s.ApplyReplacing, work},
		{"agents", s.ApplyAgents, work},
		{"archive", s.ApplyArchive, apart},
		{"second store", s.ApplyCopy, work},
		{"retention", s.ApplyRetention, work},
		{"backups", s.ApplyBackups, work},
		{"image", s.ApplyImage, work},
		{"update", s.ApplyUpdate, apart}, // it takes back what it announced before a stop
		{"finish", s.ApplyFinish, work},
		{"preferred primary", s.ApplyPreferred, work},
		{"drills", s.ApplyDrills, work},
	})
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
	s := newScope(world.New(&world.Core{
		DB: db, Backup: desired.Backup(db), OperatorSettings: r.Settings, Now: r.Now(),
	}), r.effects())
	if err := s.observe(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if s.Seen.Doubted {
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
		return reconcile.Result{RequeueAfter: world.PauseConflict}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.pause()}, nil
}

// effects are what its reconciles act with.
func (r *Reconciler) effects() *world.Effects {
	return &world.Effects{
		Client: r.Client, Reader: r.Reader, Agents: r.Agents, Programs: r.Programs, Pods: r.Pods, Poolers: r.Poolers,
		Credentials: r.Credentials, Settings: r.Settings, Copies: r.Copies, Metrics: r.Metrics, Events: r.Events,
		NoClasses: r.NoClasses, Statuses: &r.statuses, Memory: &r.memory,
	}
}

// run does the phases. A problem that the user can mend is no error: the first one is kept in the scope for the status.
func (s *scope) run(ctx context.Context, phases []phase) error {
	var failed error
	for _, p := range phases {
		if s.Blocked && !s.goesOn(p) || p.kind == work && s.HoldsWork() {
			continue
		}
		err := p.run(ctx)
		if err == nil {
			continue
		}
		var found *world.Problem
		switch {
		case !errors.As(err, &found):
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.name, err))
		case s.Problem == nil:
			s.Problem = found
		}
		s.Blocked = s.Blocked || p.kind == gates
	}
	return failed
}

// goesOn says that a phase is done though one before it has failed.
func (s *scope) goesOn(p phase) bool {
	return p.kind != gates && s.Primary() != "" && !s.InPlace() && !s.Upgrade.Closed()
}

// finish is what remains of a SampleDB that is being deleted.
func (r *Reconciler) finish(ctx context.Context, s *scope) (reconcile.Result, error) {
	gone, err := s.cleanUp(ctx)
	if err == nil && gone {
		r.forget(s.DB.UID)
		if err = s.release(ctx); apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: world.PauseConflict}, nil
		}
		return reconcile.Result{}, err
	}
	if errors.As(err, &s.Problem) {
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
	r.memory.Attempts.Forget(uid)
	r.memory.Leases.Forget(uid)
	r.memory.Unanswered.Forget(uid)
	r.memory.PacedMachines.Forget(uid)
	r.memory.PacedVain.Forget(uid)
	r.memory.Leaderless.Forget(uid)
	r.memory.UnsaidSorting.Forget(uid)
	r.memory.Cancelled.Forget(uid)
	r.statuses.Forget(uid)
}

// pause is how long until the SampleDB is looked at again.
func (s *scope) pause() time.Duration {
	pause := s.untilLook(s.untilChange())
	if s.Pulling() || s.Finishing() {
		pause = min(pause, world.PauseStuck)
	}
	if s.Upgrade.Closed() {
		pause = min(pause, world.PauseShort)
	}
	if s.SecretsWait() {
		pause = min(pause, world.PauseWorking)
	}
	pause = min(pause, s.UntilShort(), s.ReadersPause())
	for _, next := range []time.Time{
		s.Planned.Next, s.VerifiesNext, s.AuthorityNext, s.UpdateNext, s.UpgradeNext, s.FinishNext, s.AgentsNext,
		s.StopPlan.Next, s.SleepNext, s.PreferredNext, s.ReplacingNext, s.DrillPlanned.Next, s.RetentionNext,
	} {
		if !next.IsZero() {
			pause = min(pause, max(next.Sub(s.Now), 0)+time.Second)
		}
	}
	return pause
}

// untilChange is after how long something may be different that nobody tells.
func (s *scope) untilChange() time.Duration {
	state := s.Reported
	age := s.Now.Sub(meta.FindStatusCondition(state.Conditions, v1.ConditionReady).LastTransitionTime.Time)
	switch {
	case s.Stop != nil:
		return s.stopPause()
	case s.acts():
		return world.PauseWorking
	case state.Phase == phaseReady && s.Backup != nil &&
		!meta.IsStatusConditionTrue(state.Conditions, v1.ConditionArchiving):
		return world.PauseStuck
	case state.Phase == phaseReady && (s.Backup != nil || s.Collations() == nil || s.watchesAgents(state)):
		// A new primary says a moment after it leads what it has found in the databases. Of volumes that grow by
		// themselves, and whether a trouble with volumes or machines is over, only the agents know.
		return world.PauseArchiving + rand.N(world.PauseArchiving) //nolint:gosec // no secret
	case state.Phase == phaseReady:
		// Spread, so that a thousand that were found at once are not asked at once.
		return world.PauseResting + rand.N(world.PauseResting) //nolint:gosec // no secret
	case s.Problem != nil && s.Blocked:
		return s.Problem.Wait
	case s.unreached():
		return s.unreachedPause(age)
	case age > world.StuckAfter:
		return min(max(age/12, world.PauseStuck), world.PauseStuckLong)
	case s.Starting():
		return world.PauseStarting
	}
	return world.PauseWorking
}

// stopPause is until a SampleDB is looked at again that is stopped, or starts after that.
func (s *scope) stopPause() time.Duration {
	switch s.Stop.Step {
	case v1.StopStopped:
		if s.Stop.Sleeps() { // clients may wait though nobody tells
			return world.PauseArchiving + rand.N(world.PauseArchiving) //nolint:gosec // no secret
		}
		return world.PauseResting + rand.N(world.PauseResting) //nolint:gosec // no secret
	case v1.StopClosing, v1.StopProving:
		return world.PauseShort
	case v1.StopWaiting:
		if s.Stop.Sleeps() {
			return world.PauseShort // clients are held
		}
		return world.PauseWorking
	}
	return world.PauseStarting
}

// acts says that something was asked for, or is under way, that takes some steps.
func (s *scope) acts() bool {
	return s.Asks(world.RequestSwitchover) || s.Asks(world.RequestRestart) || s.InPlace() || s.Rotates() ||
		s.ChangesAuthority() || (s.Upgrading() || s.Upgrade.HasSides()) && !s.RestsOnGreen() ||
		s.Replacing.Moves()
}

// unreached says that no Pod of the SampleDB can be asked for anything: what changes is watched.
func (s *scope) unreached() bool {
	for _, pod := range s.Seen.Pods {
		if world.Reachable(pod) {
			return false
		}
	}
	return !slices.ContainsFunc(s.Seen.RestorePods, func(p corev1.Pod) bool {
		return p.Status.PodIP != "" && !pods.Ended(&p)
	})
}

// unreachedPause is until a SampleDB is looked at again whose Pods can't be asked: the longer that has been so, the
// longer. A Pod that has a node may wait for a Secret that somebody has deleted, of which nobody tells; and why a Pod
// is not even made is in an event, which is not watched.
func (s *scope) unreachedPause(age time.Duration) time.Duration {
	longest := world.PauseResting
	for _, pod := range s.Seen.Pods {
		if pod.Spec.NodeName != "" {
			longest = world.PauseStuckLong
		}
	}
	pause := min(max(age/4, world.PauseStarting), longest)
	return pause + rand.N(pause/4) //nolint:gosec // no secret
}

// watchesAgents says that it matters soon how full the volumes are, or how late things come on the machines.
func (s *scope) watchesAgents(state v1.SampleDBStatus) bool {
	return s.DB.Spec.Storage.Grow != nil || meta.IsStatusConditionFalse(state.Conditions, v1.ConditionHasRoom) ||
		meta.IsStatusConditionFalse(state.Conditions, v1.ConditionOnTime)
}

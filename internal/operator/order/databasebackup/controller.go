// Package databasebackup takes backups: for each DatabaseBackup it makes one Job when its turn has come,
// watches that to its end and reports what became of it. What it decides is a pure function
// of what it sees; nothing is remembered but in the status. It must not know how a backup is taken (that is the Pod's,
// internal/archive/take) nor how an object looks (internal/operator/desired), nor when one is due (the controller of
// SampleDBs).
package databasebackup

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
)

// Reconciler reconciles DatabaseBackups. All fields must be set.
type Reconciler struct {
	order.Base
	// Pods asks the Pods of backups.
	Pods pods.Asker
	// Cutter tells the Pods of backups by snapshots that these are cut.
	Cutter Cutter
	// Credentials derives passwords, keys and certificates.
	Credentials *credentials.Store
	// Turns bounds how many backups run at once; without it there is no bound.
	Turns *limits.Turns

	// beginning lets one backup begin at a time.
	beginning sync.Mutex
}

// scope is what one reconcile knows.
type scope struct {
	*order.Task[*v1.DatabaseBackup]
	*Reconciler
	seen observed
	// ahead is how many backups of all SampleDBs wait before it.
	ahead int
}

// Setup adds the controller to a manager. The Job of a backup has the same name.
func (r *Reconciler) Setup(manager ctrl.Manager) error { return r.kind().Setup(manager, r.Base) }

// Reconcile brings one DatabaseBackup nearer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.kind().Reconciler(r.Base).Reconcile(ctx, request) //nolint:wrapcheck // it is the same
}

// kind is that of backups. What lies in the archive is for the retention, and so is the Job, which goes with its owner.
func (r *Reconciler) kind() order.Kind[*v1.DatabaseBackup] {
	return order.Kind[*v1.DatabaseBackup]{
		Name: "databasebackup", New: func() *v1.DatabaseBackup { return &v1.DatabaseBackup{} },
		Component: naming.ComponentBackup, Owner: func(job string) (string, bool) { return job, true },
		Fields: func(o *v1.DatabaseBackup) order.Fields {
			return order.Fields{
				SampleDB: o.Spec.SampleDB, Cancel: o.Spec.Cancel, Deadline: o.Spec.Deadline.Duration,
				ObservedGeneration: &o.Status.ObservedGeneration, Phase: &o.Status.Phase,
				Attempts: &o.Status.Attempts, StartedAt: &o.Status.StartedAt, CompletedAt: &o.Status.CompletedAt,
				Conditions: &o.Status.Conditions,
			}
		},
		Work: func(t *order.Task[*v1.DatabaseBackup]) order.Work[*v1.DatabaseBackup] {
			return &scope{Task: t, Reconciler: r}
		},
		Running: 3 * time.Second, // how far it is, only its Pod knows
	}
}

// Shared says that the controllers of verifications and of SampleDBs write the status too.
func (s *scope) Shared() bool { return true }

// Pauses until a backup is looked at again that waits for its turn: how many wait before it is not watched.
const (
	pauseQueued    = 10 * time.Second
	pauseFarBehind = time.Minute
)

// Pause is how long until the backup is looked at again, 0 when it is over.
func (s *scope) Pause(d order.Decision) time.Duration {
	if !d.Over && d.Reason == v1.ReasonQueued {
		return s.Within(s.Turns.Pause(s.ahead, pauseQueued, pauseFarBehind))
	}
	return s.Task.Pause(d)
}

// Act does what was decided, which is at most one thing besides what is done about snapshots, and returns the decision
// as it is then.
func (s *scope) Act(ctx context.Context, d order.Decision) (order.Decision, error) {
	var err error
	switch d.Action {
	case order.ActionCreate:
		d, err = s.begin(ctx, d)
	case order.ActionStop:
		err = s.Jobs.Remove(ctx, s.Run.Job)
	}
	if err != nil {
		return d, err
	}
	if err := s.actSnapshot(ctx, d); err != nil {
		return d, err
	}
	return d, s.reportRemoved(ctx)
}

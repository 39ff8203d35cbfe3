// Package faultdrill breaks SampleDBs on purpose: for each FaultDrill it makes a Job whose clients write, has one
// instance broken once they write steadily, and judges what they have seen. What it decides is a pure function of what
// it sees; nothing is remembered but in the status. It must not know how an agent breaks its instance, nor how the
// clients write (internal/work/drill).
package faultdrill

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/protocol"
)

// Breaker has agents break their own instances; package agents has the real one. The cluster is the SampleDB's UID.
type Breaker interface {
	Fault(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		order protocol.FaultOrder) (protocol.FaultResult, error)
	// Status asks an agent how its instance is.
	Status(ctx context.Context, cluster types.UID, host string, config protocol.Config) (protocol.Status, error)
}

// Reconciler reconciles FaultDrills. All fields must be set.
type Reconciler struct {
	order.Base
	// Breaker asks the agents.
	Breaker Breaker
}

// scope is what one reconcile knows.
type scope struct {
	*order.Task[*v1.FaultDrill]
	*Reconciler
	seen observed
	// decided is what was decided.
	decided Decision
	// ordered and struck are when the fault was ordered and done in this reconcile, zero where it was not.
	ordered, struck time.Time
}

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error { return r.kind().Setup(manager, r.Base) }

// Reconcile brings one FaultDrill nearer to its end.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.kind().Reconciler(r.Base).Reconcile(ctx, request) //nolint:wrapcheck // it is the same
}

// kind is that of drills. They are read past the cache, because what was ordered a moment ago must be seen. There are
// few. Of one that is gone what lasts is taken back, or ends by itself.
func (r *Reconciler) kind() order.Kind[*v1.FaultDrill] {
	return order.Kind[*v1.FaultDrill]{
		Name: "faultdrill", New: func() *v1.FaultDrill { return &v1.FaultDrill{} },
		Component: naming.ComponentDrill, Owner: naming.DrilledBy,
		Fields: func(o *v1.FaultDrill) order.Fields {
			return order.Fields{
				SampleDB: o.Spec.SampleDB, Cancel: o.Spec.Cancel, Deadline: o.Spec.Deadline.Duration,
				ObservedGeneration: &o.Status.ObservedGeneration, Phase: &o.Status.Phase,
				StartedAt: &o.Status.StartedAt, CompletedAt: &o.Status.CompletedAt,
				Conditions: &o.Status.Conditions,
			}
		},
		Work: func(t *order.Task[*v1.FaultDrill]) order.Work[*v1.FaultDrill] {
			return &scope{Task: t, Reconciler: r}
		},
		Running: time.Second, // how the SampleDB is, is not watched from here
		Tidied:  naming.DrillJob, Fresh: true, Gone: r.takeBack,
	}
}

// Shared says that a fault is ordered only on the version that was read: nobody may have cancelled or deleted it since.
func (s *scope) Shared() bool { return !s.ordered.IsZero() && s.struck.IsZero() }

// Package faultdrill breaks SampleDBs on purpose: for each FaultDrill it makes a Job whose clients write, has one
// instance broken once they write steadily, and judges what they have seen. What it decides is a pure function of what
// it sees; nothing is remembered but in the status. It must not know how an agent breaks its instance, nor how the
// clients write (internal/work/drill).
package faultdrill

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/shards"
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
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Breaker asks the agents.
	Breaker Breaker
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time
}

// pauseRunning is how long until it is looked at again while it runs: how the SampleDB is, is not watched from here.
const pauseRunning = time.Second

// scope is what one reconcile knows.
type scope struct {
	// drill is the FaultDrill as the API server has it: as it was read or written last. Nobody changes it.
	drill *v1.FaultDrill
	now   time.Time
	seen  observed
	// ordered and struck are when the fault was ordered and done in this reconcile, zero where it was not.
	ordered, struck time.Time
}

// Reconcile brings one FaultDrill nearer to its end. It has no finalizer, which could keep it for ever where no
// operator is left: its Job goes with it by its owner reference, and what lasts is taken back, or ends by itself.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	drill := &v1.FaultDrill{}
	// Past the cache: what was ordered a moment ago must be seen. There are few FaultDrills.
	err := r.Reader.Get(ctx, request.NamespacedName, drill)
	switch {
	case apierrors.IsNotFound(err) || err == nil && drill.DeletionTimestamp != nil:
		return reconcile.Result{}, r.takeBack(ctx, request.NamespacedName)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read FaultDrill %s: %w", request.Name, err)
	case !r.Shard.Has(drill.Namespace, drill.Spec.SampleDB):
		return reconcile.Result{}, nil
	}
	s := &scope{drill: drill, now: r.Now()}
	if over := drill.Status.CompletedAt; over != nil { // what is over stays as it is
		left, err := r.jobs().Tidy(ctx, drill, naming.DrillJob(drill.Name), over.Time, s.now)
		return reconcile.Result{RequeueAfter: left}, err
	}
	if err := r.observe(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	d, err := r.act(ctx, s, decide(s.view()))
	if err != nil {
		return reconcile.Result{}, err
	}
	if _, err := r.report(ctx, s, d); err != nil {
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
	return s.drill.CreationTimestamp.Add(s.drill.Spec.Deadline.Duration)
}

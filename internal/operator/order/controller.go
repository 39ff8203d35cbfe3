package order

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/shards"
)

// Base is what the controllers of all kinds have. All fields must be set.
type Base struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Settings are the operator's.
	Settings desired.Settings
	// Events takes the events.
	Events events.EventRecorder
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time
}

// Jobs runs Jobs.
func (b Base) Jobs() jobs.Runner { return jobs.Runner{Client: b.Client, Reader: b.Reader} }

// Kind is what differs between the kinds.
type Kind[O client.Object] struct {
	// Name is that of the controller, New makes an empty object.
	Name string
	New  func() O
	// Component is that of its Pods; Owner finds the object by the name of the Job that a Pod works for.
	Component string
	Owner     func(job string) (name string, ok bool)
	// Fields are those that the objects of all kinds have.
	Fields func(O) Fields
	// Work is what is done for one object at one look.
	Work func(*Task[O]) Work[O]
	// Running is how long until an object is looked at again while its work is under way.
	Running time.Duration
	// Tidied is the name of the Job that is removed a while after its object is over, nil where it stays.
	Tidied func(name string) string
	// Fresh says that objects are read past the cache. Gone, if it is set, is called for one that is gone.
	Fresh bool
	Gone  func(ctx context.Context, key types.NamespacedName) error
}

// Fields are those of an object that each kind has. The pointers lead into its status; Attempts is nil where it has
// none.
type Fields struct {
	SampleDB string
	Cancel   bool
	Deadline time.Duration

	ObservedGeneration     *int64
	Phase                  *string
	Attempts               *int32
	StartedAt, CompletedAt **metav1.Time
	Conditions             *[]metav1.Condition
}

// Work is what a kind does for one object. What it knows is in the Task that it was made from.
type Work[O client.Object] interface {
	// Observe reads what the decision depends on.
	Observe(ctx context.Context) error
	// Decide says what to do.
	Decide() Decision
	// Act does what was decided, which is at most one thing, and returns the decision as it is then.
	Act(ctx context.Context, d Decision) (Decision, error)
	// Fill puts into the status of a copy what the kind alone has there, after what all have.
	Fill(changed O, d Decision)
	// Shared says that others write the status too.
	Shared() bool
	// Pause is how long until it is looked at again when nothing happens before, 0 for never.
	Pause(d Decision) time.Duration
}

// workers is how many objects of a kind are reconciled at once: one whose Pod does not answer keeps no other waiting.
const workers = 5

// Setup adds the controller of a kind to a manager. It looks at an object when its spec, its Job or a Pod of that
// changes.
func (k Kind[O]) Setup(m manager.Manager, base Base) error {
	owners := jobs.Owners(k.Component, k.Owner)
	return ctrl.NewControllerManagedBy(m).
		Named(k.Name).
		For(k.New(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(owners)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(k.Reconciler(base))
}

// Reconciler reconciles the objects of the kind.
func (k Kind[O]) Reconciler(base Base) reconcile.Reconciler {
	return reconciler[O]{Base: base, kind: k}
}

// reconciler reconciles the objects of a kind.
type reconciler[O client.Object] struct {
	Base
	kind Kind[O]
}

// Reconcile brings one object nearer to its end. It has no finalizer, which could keep it for ever where no operator is
// left: its Job goes with it by its owner reference.
func (r reconciler[O]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := r.read(ctx, request.NamespacedName)
	if object == nil || err != nil {
		return reconcile.Result{}, err
	}
	t := r.task(*object)
	if over := *t.fields.CompletedAt; over != nil { // what is over stays as it is
		if r.kind.Tidied == nil {
			return reconcile.Result{}, nil
		}
		left, err := t.Jobs.Tidy(ctx, t.Object, r.kind.Tidied(request.Name), over.Time, t.At)
		return reconcile.Result{RequeueAfter: left}, err
	}
	work := r.kind.Work(t)
	if err := work.Observe(ctx); err != nil {
		return reconcile.Result{}, err
	}
	d, err := work.Act(ctx, work.Decide())
	if err != nil {
		return reconcile.Result{}, err
	}
	if _, err := t.Report(ctx, work, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: work.Pause(d)}, nil
}

// read is the object that is to be worked for, nil for none.
func (r reconciler[O]) read(ctx context.Context, key types.NamespacedName) (*O, error) {
	object, reader := r.kind.New(), client.Reader(r.Client)
	if r.kind.Fresh {
		reader = r.Reader
	}
	err := reader.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil:
		if r.kind.Gone != nil {
			return nil, r.kind.Gone(ctx, key)
		}
		return nil, nil //nolint:nilnil // there is nothing to do, and that is no error
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", r.kind.Name, key.Name, err)
	case !r.Shard.Has(key.Namespace, r.kind.Fields(object).SampleDB):
		return nil, nil //nolint:nilnil // it is another operator's
	}
	return &object, nil
}

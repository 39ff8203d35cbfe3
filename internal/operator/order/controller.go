package order

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
)

// workers is how many objects of a kind are reconciled at once: one whose Pod does not answer keeps no other waiting.
const workers = 5

// Setup adds the controller of a kind to a manager. It looks at an object when its spec, its Job or a Pod of that
// changes; owners says for which object a Pod works.
func Setup(m manager.Manager, name string, kind client.Object, owners handler.MapFunc, r reconcile.Reconciler) error {
	return ctrl.NewControllerManagedBy(m).
		Named(name).
		For(kind, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(owners)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// pauseWaiting is how long until an object is looked at again that waits: for what is mostly not watched.
const pauseWaiting = 10 * time.Second

// Pause is how long until an object that is not over is looked at again when nothing happens before. Running is that of
// one whose work is under way, left how long it has until its deadline.
func Pause(reason string, running, left time.Duration) time.Duration {
	if reason == v1.ReasonRunning {
		return running
	}
	return max(min(pauseWaiting, left), time.Second)
}

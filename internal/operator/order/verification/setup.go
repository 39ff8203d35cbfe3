package verification

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
)

// workers is how many verifications are reconciled at once: one whose Pod does not answer keeps no other waiting.
const workers = 5

// Setup adds the controller to a manager.
func (r *Reconciler) Setup(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("verification").
		For(&v1.DatabaseBackup{}, builder.WithPredicates(askedOrComplete())).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.byJob)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// askedOrComplete lets through what may begin a verification.
func askedOrComplete() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e ctrlevent.UpdateEvent) bool {
		was, wasOne := e.ObjectOld.(*v1.DatabaseBackup)
		is, isOne := e.ObjectNew.(*v1.DatabaseBackup)
		return wasOne &&
			isOne && (asked(was) != asked(is) || (was.Status.CompletedAt == nil) != (is.Status.CompletedAt == nil))
	}}
}

// byJob is the backup that a Pod verifies: its Job belongs to it.
func (r *Reconciler) byJob(ctx context.Context, object client.Object) []reconcile.Request {
	name, ok := jobs.OfPod(object, naming.ComponentVerify)
	if !ok {
		return nil
	}
	job := &batchv1.Job{}
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: name}
	if err := r.Client.Get(ctx, key, job); err != nil {
		return nil // it is looked at again within seconds
	}
	backup := metav1.GetControllerOf(job)
	if backup == nil {
		return nil
	}
	return []reconcile.Request{
		{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: backup.Name}},
	}
}

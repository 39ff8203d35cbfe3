package api

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// deletedAfter is a reader after whose look at a FaultDrill it is deleted, once.
type deletedAfter struct {
	client.Reader
	deleted *bool
	remove  func()
}

func (r deletedAfter) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	if _, ok := o.(*v1.FaultDrill); ok && !*r.deleted {
		*r.deleted = true
		r.remove()
	}
	return nil
}

// lookAt reconciles a FaultDrill that may be gone.
func (k *driller) lookAt(d *v1.FaultDrill) {
	k.Helper()
	_, err := k.drillReconciler().Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(d)})
	k.must(err)
}

// A drill that is deleted after the operator has looked at it, and before it was ordered, breaks nothing.
func TestADrillThatIsDeletedBreaksNothing(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultPodKilled })
	k.clientsPod(d)
	k.reconciler.Reader = deletedAfter{k.reconciler.Reader, new(bool), func() { k.must(k.api.Delete(k.Context(), d)) }}
	k.lookAt(d)
	if !k.find("x-0", &corev1.Pod{}) {
		t.Error("the Pod is killed, of a drill that is not there")
	}
	k.lookAt(d)
	if !k.find("x-0", &corev1.Pod{}) {
		t.Error("the Pod is killed, of a drill that is gone")
	}
}

// One that is deleted while its fault is being ordered, or lasts, is taken back.
func TestADrillThatIsDeletedIsTakenBack(t *testing.T) {
	for name, propagation := range map[string]metav1.DeletionPropagation{
		"it is gone": metav1.DeletePropagationBackground, "it waits for its Job": metav1.DeletePropagationForeground,
	} {
		t.Run(name, func(t *testing.T) {
			k, _, d := drilled(t)
			k.clientsPod(d)
			k.breaker.meanwhile = func() {
				k.must(k.api.Delete(k.Context(), d, client.PropagationPolicy(propagation)))
			}
			k.lookAt(d)
			k.breaker.meanwhile = nil
			k.expectOrders("hang-server at 10.1.0.1")
			k.lookAt(d)
			k.expectOrders("undo at 10.1.0.1", "undo at 10.1.0.2", "undo at 10.1.0.3")
			next := k.ask("next")
			k.clientsPod(next)
			k.drill(next)
			k.expectOrders("hang-server at 10.1.0.1")
			k.lookAt(d) // what lasts now is not its own
			k.expectOrders()
			k.must(k.api.Delete(k.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: k.namespace, Name: naming.DrillJob(d.Name),
			}}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
			k.lookAt(d)
			k.expectOrders()
		})
	}
}

// A drill that is over, or had not begun, leaves nothing to take back when it is deleted.
func TestADrillThatIsOverIsNotTakenBack(t *testing.T) {
	k, _, d := drilled(t)
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.end(pod, k.result())
	waits := k.ask("waits")
	k.expectOrders("hang-server at 10.1.0.1")
	job := &batchv1.Job{}
	k.read(naming.DrillJob(d.Name), job)
	job.Status.StartTime, job.Status.CompletionTime = &job.CreationTimestamp, &job.CreationTimestamp
	job.Status.Succeeded = 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
	k.must(k.api.Status().Update(k.Context(), job))
	for _, gone := range []*v1.FaultDrill{d, waits} {
		k.must(k.api.Delete(k.Context(), gone))
		k.lookAt(gone)
	}
	k.expectOrders()
}

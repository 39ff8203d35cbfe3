package sampledb

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// What users do comes before all else: while a thousand SampleDBs restart, each is looked at again and again, and
// somebody's edit of another one must not wait for that.
const (
	priorityEdit  = 1
	priorityOther = 0
)

// edited has a SampleDB looked at that somebody has made, changed or deleted, before those for which there is another
// reason. At the operator's start all are there already: that is no edit.
func edited() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e ctrlevent.CreateEvent, q queue) {
			if e.IsInInitialList {
				q.Add(requestOf(e.Object))
				return
			}
			first(q, e.Object)
		},
		UpdateFunc: func(_ context.Context, e ctrlevent.UpdateEvent, q queue) { first(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e ctrlevent.DeleteEvent, q queue) { first(q, e.Object) },
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// first puts a SampleDB before the others, where the queue has an order.
func first(q queue, object client.Object) {
	ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !ok {
		q.Add(requestOf(object))
		return
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(priorityEdit)}, requestOf(object))
}

func requestOf(object client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
}

// once lets a SampleDB come before others for its edit, and not when it is looked at again after that: the queue would
// keep what it has.
func once(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, request)
		result.Priority = new(priorityOther)
		return result, err
	})
}

package sampledb

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
)

func nextOf(q priorityqueue.PriorityQueue[reconcile.Request]) string {
	request, _, _ := q.GetWithPriority()
	q.Done(request)
	return request.Name
}

// What somebody has just edited is looked at before what was to be looked at already.
func TestAnEditComesBeforeWhatWaits(t *testing.T) {
	named := func(name, version string) *v1.SampleDB {
		return &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	for name, edit := range map[string]func(q priorityqueue.PriorityQueue[reconcile.Request]){
		"one that is new": func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			edited().Create(t.Context(), ctrlevent.CreateEvent{Object: named("edited", "1")}, q)
		},
		"one that is changed": func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			edited().Update(t.Context(),
				ctrlevent.UpdateEvent{ObjectOld: named("edited", "1"), ObjectNew: named("edited", "2")}, q)
		},
		"one that is gone": func(q priorityqueue.PriorityQueue[reconcile.Request]) {
			edited().Delete(t.Context(), ctrlevent.DeleteEvent{Object: named("edited", "2")}, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := priorityqueue.New[reconcile.Request]("test")
			defer q.ShutDown()
			for i := range 100 {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: fmt.Sprint(i)}})
			}
			edit(q)
			if got := nextOf(q); got != "edited" {
				t.Errorf("the next one is %s", got)
			}
		})
	}
}

// At the operator's start all SampleDBs are new to it: none was edited.
func TestWhatIsThereAtTheStartWaits(t *testing.T) {
	q := priorityqueue.New[reconcile.Request]("test")
	defer q.ShutDown()
	old := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	edited().Create(t.Context(), ctrlevent.CreateEvent{Object: old, IsInInitialList: true}, q)
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "other"}})
	if got := nextOf(q); got != "other" {
		t.Errorf("the next one is %s", got)
	}
}

// An edit brings a SampleDB forward once: the queue keeps the place of what is looked at again, unless it is told.
func TestAnEditBringsForwardOnce(t *testing.T) {
	inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	})
	result, err := once(inner).Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter != time.Second || result.Priority == nil || *result.Priority != priorityOther {
		t.Errorf("the result is %+v, %v", result, err)
	}
}

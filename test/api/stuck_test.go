package api

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// countReads counts what the reconciler reads past its cache.
func (w *world) countReads() *writes {
	w.Helper()
	past := &writes{}
	config := rest.CopyConfig(w.server)
	config.Wrap(past.wrap)
	config.Impersonate.UserName = operatorUser
	reader, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	w.reconciler.Reader = reader
	return past
}

// pass reconciles a SampleDB for a time, each time when the reconciler asks for it and at once after none of its
// changes, and returns how often that was.
func (w *world) pass(db *v1.SampleDB, long time.Duration) (reconciles int) {
	w.Helper()
	for end := w.now.Add(long); w.now.Before(end); reconciles++ {
		result, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(db)})
		w.must(err)
		if result.RequeueAfter <= 0 {
			w.Fatal("it is never looked at again")
		}
		w.now = w.now.Add(result.RequeueAfter)
	}
	return reconciles
}

// A database that no node takes costs the API server little: what changes is watched, and nobody can be asked.
func TestADatabaseThatNoNodeTakesCostsFewRequests(t *testing.T) {
	w := newWorld(t)
	past := w.countReads()
	db := w.create("x", instances(3))
	db = w.reconcile(db)
	for i := range 3 {
		w.refuseNode(db, i)
	}
	for _, span := range []struct {
		long time.Duration
		most int // requests
	}{{10 * time.Minute, 120}, {time.Hour, 80}} {
		w.writes.take()
		before := len(past.reads())
		reconciles := w.pass(db, span.long)
		requests := len(w.writes.take()) + len(past.reads()) - before
		t.Logf("in %v: %d reconciles, %d requests", span.long, reconciles, requests)
		if requests > span.most {
			t.Errorf("%d requests in %v, want no more than %d", requests, span.long, span.most)
		}
	}
	w.read("x", db)
	w.expect(db, v1.ConditionReady, "False", v1.ReasonUnschedulable)
}

// refuseNode makes the Pod of an instance that no node takes.
func (w *world) refuseNode(db *v1.SampleDB, ordinal int) {
	w.Helper()
	set, pod := &appsv1.StatefulSet{}, &corev1.Pod{}
	w.read(naming.StatefulSet(db.Name), set)
	w.makePod(set, ordinal, address(set, ordinal))
	w.read(naming.Instance(db.Name, ordinal), pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available: 3 Insufficient memory.",
	}}}
	w.must(w.api.Status().Update(w.Context(), pod))
}

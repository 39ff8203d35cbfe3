package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/maintenance"
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

// A database at rest costs the API server little, however often its agents are asked: now and then the operator reads
// its Lease past the cache, and tries to create its Secrets. All else is in the cache.
func TestADatabaseAtRestCostsFewRequests(t *testing.T) {
	const most = 50 // requests in an hour
	for name, c := range map[string]struct{ archive, grows bool }{
		"without an archive":                {false, false},
		"with an archive":                   {true, false},
		"with volumes that grow themselves": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			past := w.countReads()
			db := w.started("x", instances(3), withoutBackup)
			w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Collations = &maintenance.Report{} })
			if c.grows {
				db = w.fill(w.edit(db, growing("2Gi")), 0, 70)
			}
			if c.archive {
				db = w.edit(db, daily("none"))
				state := works
				db = w.archive(db, &state)
			}
			for range 3 {
				db = w.reconcile(db)
			}
			w.writes.take()
			before := len(past.reads())
			reconciles := w.pass(db, time.Hour)
			writes, reads := w.writes.take(), past.reads()[before:]
			t.Logf("in an hour: %d reconciles, %d writes, %d reads", reconciles, len(writes), len(reads))
			for _, write := range writes {
				if !strings.HasPrefix(write, "POST ") { // what exists is refused
					t.Errorf("at rest there is a %s", write)
				}
			}
			if requests := len(writes) + len(reads); requests > most {
				t.Errorf("%d requests in an hour, want no more than %d", requests, most)
			}
		})
	}
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

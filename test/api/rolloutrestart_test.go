package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// rollout does to a workload what kubectl rollout restart does.
func (w *world) rollout(object client.Object, name string, template *corev1.PodTemplateSpec, at time.Time) {
	w.Helper()
	w.read(name, object)
	was, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		w.Fatal("no object")
	}
	metav1.SetMetaDataAnnotation(&template.ObjectMeta, naming.AnnotationRolloutRestart, at.Format(time.RFC3339))
	w.must(w.api.Patch(w.Context(), object, client.MergeFrom(was), client.FieldOwner("kubectl-rollout")))
}

// rolloutOfSet does it to a StatefulSet.
func (w *world) rolloutOfSet(name string, at time.Time) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.rollout(set, name, &set.Spec.Template, at)
}

// rolloutLeft is what a StatefulSet still has of it.
func (w *world) rolloutLeft(name string) string {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(name, set)
	return set.Spec.Template.Annotations[naming.AnnotationRolloutRestart]
}

// kubectl rollout restart restarts the servers once, in their order; one that can't be followed is refused in words.
func TestARolloutRestartRestartsTheServersInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		ago             time.Duration
		restarts, event string
	}{
		"now":      {0, "x-2 x-1 x-0", " Restarted every server was restarted"},
		"long ago": {2 * time.Hour, "", " RestartRefused kubectl rollout restart statefulset/x, of "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3))
			w.rolloutOfSet("x", w.now.Add(-c.ago))
			for range 30 {
				w.observe("x")
				db = w.reconcile(db)
			}
			if got := strings.Join(w.agents.restarts, " "); got != c.restarts {
				t.Errorf("restarted are %q, want %q", got, c.restarts)
			}
			if events := w.drainEvents(); !strings.Contains(events, c.event) {
				t.Errorf("events: %s", events)
			}
			if db.Annotations[naming.AnnotationRestart] != "" || w.rolloutLeft("x") != "" {
				t.Errorf("it will be done again: %v, %q", db.Annotations, w.rolloutLeft("x"))
			}
		})
	}
}

// A restart of one server that is under way ends before that of all begins.
func TestARolloutRestartWaitsForAnotherRestart(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	db = w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationRestart, "x-1")
	})
	w.rolloutOfSet("x", w.now)
	for range 40 {
		w.observe("x")
		db = w.reconcile(db)
	}
	if got := strings.Join(w.agents.restarts, " "); got != "x-1 x-2 x-1 x-0" {
		t.Errorf("restarted are %q", got)
	}
}

// What the operator does not restart in order, it refuses, with what to do.
func TestARolloutRestartOfReadersIsRefused(t *testing.T) {
	w := newWorld(t)
	db := w.settleReaders(w.started("x", instances(1), readers(2)))
	w.drainEvents()
	w.rolloutOfSet("x-readers", w.now)
	w.reconcile(db)
	if events := w.drainEvents(); !strings.Contains(events, "RestartRefused") ||
		!strings.Contains(events, "kubectl delete pod x-readers-0") || w.rolloutLeft("x-readers") != "" {
		t.Errorf("events: %s; left is %q", events, w.rolloutLeft("x-readers"))
	}
}

// Deployments are restarted by Kubernetes: what kubectl has written there stays, also with the next change.
func TestARolloutRestartOfADeploymentIsNotUndone(t *testing.T) {
	w := newWorld(t)
	db := w.settlePooler(w.started("x", instances(1), pooler))
	pool := &appsv1.Deployment{}
	w.rollout(pool, "x-pool", &pool.Spec.Template, w.now)
	w.settlePooler(w.edit(db, func(db *v1.SampleDB) { db.Spec.Pod.Labels = map[string]string{"a": "b"} }))
	w.read("x-pool", pool)
	if of := pool.Spec.Template; of.Annotations[naming.AnnotationRolloutRestart] == "" || of.Labels["a"] != "b" {
		t.Errorf("the Pods are made of %s", jsonOf(t, of.ObjectMeta))
	}
}

package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func deletes(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionDelete }

// runsOn checks that nothing of a SampleDB goes, and that nobody owns its volumes.
func (w *world) runsOn(name string) {
	w.Helper()
	for _, object := range []client.Object{
		named(&appsv1.StatefulSet{}, name), named(&corev1.ConfigMap{}, naming.ConfigMap(name)),
		named(&corev1.Pod{}, naming.Instance(name, 0)),
	} {
		there := w.find(object.GetName(), object)
		owned := slices.ContainsFunc(object.GetOwnerReferences(),
			func(o metav1.OwnerReference) bool { return o.Kind == "SampleDB" })
		if !there || object.GetDeletionTimestamp() != nil || owned {
			w.Errorf("%T %s goes", object, object.GetName())
		}
	}
	w.unowned(naming.Claim(name, 0))
}

// unowned checks that a claim stays, and goes with nobody.
func (w *world) unowned(claim string) {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{}
	w.read(claim, c)
	if len(c.OwnerReferences) != 0 || c.DeletionTimestamp != nil {
		w.Errorf("the volume %s belongs to %v, and is being deleted since %v",
			claim, c.OwnerReferences, c.DeletionTimestamp)
	}
}

// leaveAll is Kubernetes' garbage collector: what a SampleDB owns is its own no more, then the note of that goes.
func (w *world) leaveAll(db *v1.SampleDB, objects ...client.Object) {
	w.Helper()
	for _, object := range objects {
		w.read(object.GetName(), object)
		object.SetOwnerReferences(nil)
		w.must(w.api.Update(w.Context(), object))
	}
	now := &v1.SampleDB{}
	w.read(db.Name, now)
	now.Finalizers = slices.DeleteFunc(now.Finalizers,
		func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	w.must(w.api.Update(w.Context(), now))
}

func named[T client.Object](object T, name string) T {
	object.SetName(name)
	return object
}

// kubectl delete --cascade=orphan: what there is stays, and runs.
func TestADeletionThatLeavesEverythingLeavesTheData(t *testing.T) {
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	for name, modify := range map[string]func(*v1.SampleDB){
		"with an archive": archived, "whose volumes would go": deletes,
	} {
		t.Run(name+", before Kubernetes has left it", func(t *testing.T) {
			w := newWorld(t)
			_ = w.taker()
			db := w.started("x", modify)
			db = w.goes(db, orphan)
			w.waiting(db, "Kubernetes to let go")
			w.leaveAll(db, named(&coordinationv1.Lease{}, naming.Lease("x")))
			w.reconcile(db)
			w.leftWhole("x")
		})
		t.Run(name+", after Kubernetes has left it", func(t *testing.T) {
			w := newWorld(t)
			_ = w.taker()
			db := w.started("x", modify)
			w.must(w.api.Delete(t.Context(), db, orphan))
			// The cache may have all others as they were.
			w.leaveAll(db, named(&coordinationv1.Lease{}, naming.Lease("x")))
			w.reconcile(db)
			w.leftWhole("x")
		})
	}
}

// A reconcile that has not seen the deletion yet writes its owner on objects once more, after Kubernetes has left them.
// They must not go with the SampleDB.
func TestADeletionThatLeavesEverythingLeavesWhatIsWrittenMeanwhile(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", deletes)
	w.must(w.api.Delete(t.Context(), db, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	w.leaveAll(db, named(&coordinationv1.Lease{}, naming.Lease("x")), named(&appsv1.StatefulSet{}, "x"),
		named(&corev1.PersistentVolumeClaim{}, naming.Claim("x", 0)))
	owner := *metav1.NewControllerRef(db, v1.GroupVersion.WithKind("SampleDB"))
	for _, object := range []client.Object{
		named(&appsv1.StatefulSet{}, "x"), named(&corev1.PersistentVolumeClaim{}, naming.Claim("x", 0)),
	} {
		w.read(object.GetName(), object)
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		w.must(w.api.Update(t.Context(), object))
	}
	w.reconcile(db)
	w.leftWhole("x")
}

// leftWhole checks that a SampleDB is gone and has left all that it had.
func (w *world) leftWhole(name string) {
	w.Helper()
	if w.find(name, &v1.SampleDB{}) {
		w.Error("the SampleDB is still there")
	}
	if backups := w.backups(); len(backups) != 0 {
		w.Errorf("a last backup is taken: %v", backups)
	}
	if w.agents.told().Closed {
		w.Error("no client is let in any more")
	}
	w.runsOn(name)
	if events := w.drainEvents(); !strings.Contains(events, "DataKept") {
		w.Errorf("events: %s", events)
	}
}

// definition is a CustomResourceDefinition.
func definition(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetName(name)
	object.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	return object
}

// uninstall deletes kinds, and waits until the API server has deleted the objects of the names.
func (w *world) uninstall(kinds []string, objects ...client.Object) {
	w.Helper()
	for _, kind := range kinds {
		w.must(w.api.Delete(w.Context(), definition(kind)))
	}
	ctx, stop := context.WithTimeout(w.Context(), time.Minute)
	defer stop()
	for _, object := range objects {
		for {
			err := w.api.Get(ctx, client.ObjectKeyFromObject(object), object)
			if apierrors.IsNotFound(err) || err == nil && object.GetDeletionTimestamp() != nil {
				break
			}
			w.must(err)
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// Who deletes a CustomResourceDefinition deletes its objects, and wants that of none of them.
func TestASampleDBThatGoesWithItsKindLeavesItsVolumes(t *testing.T) {
	w := newWorldOn(t, ownServer(t))
	k := w.taker()
	plain := w.started("plain", deletes)
	// Of another the last backup is being taken when the kinds go.
	saved := w.started("saved", archived)
	w.agents.change("10.5.0.1", func(s *protocol.Status) { s.Closed = true })
	saved = w.goes(saved)
	k.take(k.final(saved))
	saved = w.reconcile(saved)
	w.waiting(saved, "the last backup")
	w.drainEvents()

	w.uninstall([]string{naming.DefinitionSampleDB, "databasebackups.toban.dev"}, plain, saved)
	for _, db := range []*v1.SampleDB{plain, saved} {
		now := w.reconcile(db)
		if now == nil {
			t.Fatalf("%s went before its Pods", db.Name)
		}
		if m := w.expect(now, v1.ConditionReady, metav1.ConditionFalse,
			v1.ReasonDeleting); !strings.Contains(m, "its volumes stay") {
			t.Errorf("it says %q", m)
		}
		w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace),
			client.MatchingLabels(naming.InstanceSelector(db.Name))))
		if w.reconcile(now) != nil {
			t.Errorf("%s is still there", db.Name)
		}
		w.unowned(naming.Claim(db.Name, 0))
	}
	if events := w.drainEvents(); strings.Count(events, "DataKept") != 2 {
		t.Errorf("events: %s", events)
	}
}

// A PostgreSQL's own server is deleted because its PostgreSQL is, and a database on a shared one would be dropped.
func TestAPostgreSQLThatGoesWithItsKindLeavesItsData(t *testing.T) {
	w := pgWorldIn(newWorldOn(t, ownServer(t)))
	w.started("shared")
	pg := w.foodb(onShared, func(pg *pgv1.PostgreSQL) { pg.Spec.DeletionPolicy = v1.DeletionDelete })
	w.must(w.api.Create(t.Context(), pg))
	pg = w.steps(pg, 3)
	own := w.foodb(func(pg *pgv1.PostgreSQL) { pg.Name, pg.Spec.DeletionPolicy = "own", v1.DeletionDelete })
	w.must(w.api.Create(t.Context(), own))
	w.step(own)
	db := &v1.SampleDB{}
	w.read("own", db)
	for range 3 {
		db = w.reconcile(db)
		w.playCluster(db)
	}
	w.uninstall([]string{naming.DefinitionPostgreSQL}, pg, own)
	if w.step(pg) != nil || w.databases.last().Drop {
		t.Error("the database is dropped")
	}
	w.step(own)
	db = w.goes(db) // as Kubernetes does then
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace),
		client.MatchingLabels(naming.InstanceSelector("own"))))
	if w.reconcile(db) != nil {
		t.Error("its server is still there")
	}
	w.unowned("data-own-0")
}

// blind is a reader that can't read CustomResourceDefinitions.
type blind struct{ client.Reader }

func (b blind) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if object.GetObjectKind().GroupVersionKind().Kind == "CustomResourceDefinition" {
		return errors.New("the API server does not say")
	}
	return b.Reader.Get(ctx, key, object, opts...)
}

func TestNothingIsDeletedWhileItIsNotKnownWhyASampleDBGoes(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", deletes)
	seeing := w.reconciler.Reader
	w.reconciler.Reader = blind{seeing}
	db = w.goes(db)
	w.waiting(db, "the API server does not say")
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	db = w.reconcile(db)
	w.waiting(db, "the API server does not say")
	if w.deleting("data-x-0") {
		t.Error("the volume goes")
	}
	w.reconciler.Reader = seeing
	w.reconcile(db)
	w.gone(db)
}

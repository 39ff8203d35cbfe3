package api

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// in makes an object one of another namespace.
func in[T client.Object](namespace string, object T) T {
	object.SetNamespace(namespace)
	return object
}

// installed is an operator of one namespace, as install-namespaced.yaml has it, with more options.
func (w *world) installed(home, watched string, options ...string) *running {
	w.Helper()
	only := ""
	for _, object := range w.install("install-namespaced.yaml", "toban-system", home, "toban-databases", watched) {
		if object.GetKind() == "Deployment" {
			deployment := &appsv1.Deployment{}
			w.must(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment))
			first := deployment.Spec.Template.Spec.Containers[0].Env[0]
			only = first.Name + "=" + first.Value
		}
	}
	w.awaitRight("system:serviceaccount:"+home+":toban-operator", authorizationv1.ResourceAttributes{
		Namespace: watched, Group: "toban.dev", Resource: "sampledbs", Verb: "watch",
	})
	w.awaitRight("system:serviceaccount:"+home+":toban-operator", authorizationv1.ResourceAttributes{
		Namespace: home, Resource: "secrets", Name: naming.OperatorSecret, Verb: "get",
	})
	return w.runOperator(home, append(options, only)...)
}

// untouched checks that no operator has done anything about a SampleDB.
func (w *world) untouched(db *v1.SampleDB) {
	w.Helper()
	w.must(w.api.Get(w.Context(), client.ObjectKeyFromObject(db), db))
	if len(db.Finalizers) > 0 || len(db.Status.Conditions) > 0 || w.has(db.Namespace, db.Name, &appsv1.StatefulSet{}) {
		w.Errorf("an operator works on %s/%s: %v, %+v", db.Namespace, db.Name, db.Finalizers, db.Status)
	}
}

// made waits until the operator has made the instances of a SampleDB, and returns it.
func (w *world) made(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	w.until("there are no instances of "+db.Name, func() bool {
		w.must(w.api.Get(w.Context(), client.ObjectKeyFromObject(db), db))
		return w.has(db.Namespace, db.Name, &appsv1.StatefulSet{}) && len(db.Status.Conditions) > 0
	})
	return db
}

func conditionSays(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// An operator with Roles alone does all its work in its namespace, none elsewhere, and says what it can't know.
func TestAnOperatorOfOneNamespaceNeedsOnlyItsRoles(t *testing.T) {
	w := newWorld(t)
	home, elsewhere := w.anotherNamespace(), w.anotherNamespace()
	stranger := in(elsewhere, w.sampleDB("x"))
	w.must(w.api.Create(t.Context(), stranger))
	o := w.installed(home, w.namespace)

	db := w.sampleDB("x", deletes)
	w.must(w.api.Create(t.Context(), db))
	pgs := &pgWorld{world: w}
	w.must(w.api.Create(t.Context(), pgs.foodb(func(pg *pgv1.PostgreSQL) { pg.Name = "own" })))
	far := pgs.foodb(func(pg *pgv1.PostgreSQL) {
		pg.Spec.Server = &pgv1.ServerReference{Namespace: elsewhere, Name: "x"}
	})
	w.must(w.api.Create(t.Context(), far))
	app := &appv1.MyApp{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app"}}
	app.Spec.Image = "nginx"
	w.must(w.api.Create(t.Context(), app))

	db = w.made(db)
	w.made(w.sampleDB("own"))
	w.until("the MyApp has no Deployment", func() bool {
		return w.has(w.namespace, naming.App("app"), &appsv1.Deployment{})
	})
	w.until("the PostgreSQL on a server elsewhere says nothing of that", func() bool {
		w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(far), far))
		return strings.Contains(conditionSays(far.Status.Conditions, pgv1.ConditionReady), "does not watch")
	})
	for name, object := range map[string]client.Object{
		naming.Role("x"): &rbacv1.Role{}, naming.Lease("x"): &coordinationv1.Lease{},
		naming.AppSecret("x"): &corev1.Secret{},
	} {
		if !w.has(w.namespace, name, object) {
			t.Errorf("there is no %T %s", object, name)
		}
	}
	if !w.has(home, naming.OperatorLease(0), &coordinationv1.Lease{}) ||
		!w.has(home, naming.OperatorSecret, &corev1.Secret{}) {
		t.Error("the operator's Lease or root Secret is not in its own namespace")
	}
	if m := conditionSays(db.Status.Conditions, v1.ConditionStorageReady); !strings.Contains(m,
		"the operator may not read StorageClasses") {
		t.Errorf("of the volumes it says %q", m)
	}
	for _, sentence := range []string{
		"StorageClasses can't be read", "metrics are not served", "CustomResourceDefinitions can't be read",
	} {
		if !strings.Contains(o.said(), sentence) {
			t.Errorf("its log does not say that %s", sentence)
		}
	}
	o.deletesWithoutData(db)
	w.untouched(stranger)
}

// deletesWithoutData checks that a SampleDB that is deleted goes, and that its volume stays, because nobody can tell
// whether its kind goes. Beside that only a look at the PostgreSQLs' Secrets is refused, as in each installation:
// nobody has let the operator watch them.
func (o *running) deletesWithoutData(db *v1.SampleDB) {
	o.Helper()
	o.must(o.api.Delete(o.Context(), db))
	o.until("the SampleDB is still there", func() bool { return !o.has(db.Namespace, db.Name, &v1.SampleDB{}) })
	o.unowned(naming.Claim(db.Name, 0))
	if got := o.refusals(); !slices.Equal(got, []string{
		"GET /api/v1/namespaces/" + db.Namespace + "/secrets",
		"GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + naming.DefinitionSampleDB,
	}) {
		o.Errorf("refused are %q", got)
	}
	o.until("nobody is told that the volumes stay", func() bool {
		var all eventsv1.EventList
		o.must(o.api.List(o.Context(), &all, client.InNamespace(db.Namespace)))
		return slices.ContainsFunc(all.Items, func(e eventsv1.Event) bool {
			return e.Reason == "DataKept" && strings.Contains(e.Note, "may not read the CustomResourceDefinition")
		})
	})
}

// The operator of all namespaces leaves one to another operator, and none of its own requests is refused.
func TestTheOperatorOfAllNamespacesLeavesOneToAnother(t *testing.T) {
	w := newWorldOn(t, ownServer(t))
	left := in(w.anotherNamespace(), w.sampleDB("x"))
	w.must(w.api.Create(t.Context(), left))
	o := w.runOperator(operatorNamespace, "IGNORE_NAMESPACE="+left.Namespace)
	db := w.sampleDB("x", deletes)
	w.must(w.api.Create(t.Context(), db))
	db = w.made(db)
	if m := conditionSays(db.Status.Conditions, v1.ConditionStorageReady); strings.Contains(m, "may not read") {
		t.Errorf("of the volumes it says %q", m)
	}
	w.must(w.api.Delete(t.Context(), db))
	w.until("the volume is still there", func() bool { return w.deleting(naming.Claim("x", 0)) })
	w.untouched(left)
	if refused := o.refusals(); len(refused) > 0 {
		t.Errorf("refused are %q", refused)
	}

	w.installed(w.anotherNamespace(), left.Namespace)
	w.made(left)
}

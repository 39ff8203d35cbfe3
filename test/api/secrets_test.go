package api

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/secrets"
)

// operatorUser is who the operator is to the API server.
const operatorUser = "system:serviceaccount:" + operatorNamespace + ":toban-operator"

// follower follows Secrets for the object of a name, with the operator's rights. Told has one for each time that a
// controller is told of a change.
func (w *world) follower(name string) (f *secrets.Follower, told chan struct{}) {
	w.Helper()
	config := rest.CopyConfig(w.server)
	config.Impersonate.UserName = operatorUser
	clientset, err := kubernetes.NewForConfig(config)
	w.must(err)
	store := w.reconciler.Credentials
	f = secrets.New(clientset, func(content []byte) string { return store.Digest("secrets", content) })
	told = make(chan struct{}, 100)
	ctx, stop := context.WithCancel(context.Background())
	w.Cleanup(func() {
		f.Follow(types.NamespacedName{Namespace: w.namespace, Name: name}) // nothing any more
		stop()
	})
	go func() {
		for {
			select {
			case <-f.Changed():
				told <- struct{}{}
			case <-ctx.Done():
				return
			}
		}
	}()
	return f, told
}

// mayWatch lets the operator watch a Secret, as the documentation says.
func (w *world) mayWatch(secret string) {
	w.Helper()
	w.must(w.api.Create(w.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: secret},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret},
			Verbs: []string{"watch"},
		}}}))
	w.must(w.api.Create(w.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: secret},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: secret},
			Subjects: []rbacv1.Subject{
				{Kind: "ServiceAccount", Namespace: operatorNamespace, Name: "toban-operator"},
			}}))
	w.awaitMayWatch(secret)
}

// awaitMayWatch waits until the API server goes by a Role: it watches Roles and their bindings itself.
func (w *world) awaitMayWatch(secret string) {
	w.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: operatorUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.namespace, Verb: "watch", Resource: "secrets", Name: secret,
			},
		}}
		w.must(w.api.Create(w.Context(), review))
		if review.Status.Allowed {
			return
		} else if time.Now().After(end) {
			w.Fatalf("the operator may not watch %s: %s", secret, review.Status.Reason)
		}
	}
}

// wait waits until a controller is told of a change.
func (w *world) wait(told <-chan struct{}) {
	w.Helper()
	select {
	case <-told:
	case <-time.After(time.Minute):
		w.Fatal("nobody was told that the Secret has changed")
	}
}

func TestTheVersionOfASecretIsThatOfItsContent(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "payment"},
		Data:       map[string][]byte{"key": []byte("one")},
	}
	w.must(w.api.Create(t.Context(), secret))
	w.must(w.api.Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "private"}}))
	w.mayWatch("payment")
	w.mayWatch("missing")
	f, told := w.follower("app")
	key := types.NamespacedName{Namespace: w.namespace, Name: "app"}
	f.Follow(key, "payment", "private", "missing")
	settled := func() map[string]string {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if versions, ok := f.Versions(key); ok {
				return versions
			} else if time.Now().After(end) {
				t.Fatal("it is never found out what the versions are")
			}
		}
	}
	first := settled()
	if first["payment"] == "" || first["private"] != "" || first["missing"] == "" {
		t.Fatalf("the versions are %v: one may be watched, one not, and one is not there", first)
	}
	for range 3 {
		w.wait(told)
	}
	secret.Annotations = map[string]string{"note": "x"}
	w.must(w.api.Update(t.Context(), secret))
	secret.Data["key"] = []byte("two")
	w.must(w.api.Update(t.Context(), secret))
	w.wait(told)
	if second := settled(); second["payment"] == first["payment"] || len(told) > 0 {
		t.Errorf("the versions were %v and are %v, and %d more were told", first, second, len(told))
	}
	again, _ := w.follower("app")
	again.Follow(key, "payment")
	f = again
	if got := settled(); got["payment"] == first["payment"] {
		t.Error("after a restart the version is that of another content")
	}
}

func TestThePodsOfAMyAppAreReplacedWhenASecretChangesThatMayBeWatched(t *testing.T) {
	w := newAppWorld(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "payment"},
		Data:       map[string][]byte{"key": []byte("one")},
	}
	w.must(w.api.Create(t.Context(), secret))
	w.mayWatch("payment")
	app := w.app(func(app *appv1.MyApp) { app.Spec.Config.Secrets = []appv1.ObjectName{"payment"} })
	w.must(w.api.Create(t.Context(), app))
	w.again(app)
	if d := (&appsv1.Deployment{}); w.find("sample-app", d) &&
		d.Spec.Template.Annotations[naming.AnnotationSecrets] == "" {
		t.Error("the first Pods are made before it is known which Secret they are made with, " +
			"and would be replaced at once")
	}
	annotation := func() string {
		w.settle(app)
		return w.deployment(app).Spec.Template.Annotations[naming.AnnotationSecrets]
	}
	first := annotation()
	if first == "" {
		t.Fatal("the Pods do not say which Secret they were made with")
	}
	for len(w.told) > 0 {
		<-w.told
	}
	secret.Data["key"] = []byte("two")
	w.must(w.api.Update(t.Context(), secret))
	w.wait(w.told)
	if second := annotation(); second == first {
		t.Error("the Pods are the same with another Secret")
	}
}

// settle reconciles until it is known which versions the Secrets have, and once more.
func (w *appWorld) settle(app *appv1.MyApp) {
	w.Helper()
	for settled := false; !settled; _, settled = w.apps.Secrets.Versions(client.ObjectKeyFromObject(app)) {
		w.again(app)
		time.Sleep(time.Millisecond)
	}
	w.again(app)
}

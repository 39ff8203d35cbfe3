package api

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/namespaces"
	"toban.dev/internal/credentials"
	"toban.dev/internal/naming"
)

// A root secret is made where there is nothing yet. One that was lost is not replaced: it would lock everybody out.
func TestALostRootSecretIsNotReplaced(t *testing.T) {
	w := newWorldOn(t, ownServer(t))
	direct, ok := w.reconciler.Client.(labelled) // with the operator's rights
	if !ok {
		t.Fatal("the reconciler has another client")
	}
	key := types.NamespacedName{Namespace: operatorNamespace, Name: naming.OperatorSecret}
	others := newWorldOn(t, w.server)
	others.started("theirs") // has another operator, with another root
	databases := func(ctx context.Context) ([]v1.SampleDB, error) {
		return namespaces.Choice{Ignored: []string{others.namespace}}.SampleDBs(ctx, direct.Client)
	}
	first, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	w.must(err)
	root := &corev1.Secret{}
	w.must(w.api.Get(t.Context(), key, root))

	db := w.sampleDB("waits")
	w.must(w.api.Create(t.Context(), db))
	w.must(w.api.Delete(t.Context(), root))
	if _, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases); err != nil {
		t.Errorf("a SampleDB that no operator has seen keeps the first one from starting: %v", err)
	}
	w.must(w.api.Get(t.Context(), key, root))

	w.started("x")
	w.must(w.api.Delete(t.Context(), root))
	_, err = credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	if err == nil || !strings.Contains(err.Error(), "put your copy of it back") {
		t.Errorf("with a SampleDB and without a root: %v", err)
	}
	if err := w.api.Get(t.Context(), key, root); !apierrors.IsNotFound(err) {
		t.Errorf("another root secret is made: %v", err)
	}
	root.ObjectMeta = metav1.ObjectMeta{Namespace: root.Namespace, Name: root.Name}
	w.must(w.api.Create(t.Context(), root))
	again, err := credentials.Load(t.Context(), direct.Client, operatorNamespace, databases)
	w.must(err)
	now, err := again.Password(db, 0)
	w.must(err)
	if was, _ := first.Password(db, 0); now == was {
		t.Error("the first root is back, and not the second")
	}
}

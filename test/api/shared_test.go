package api

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/order/verification"
	"toban.dev/internal/operator/removed"
)

// earlier is a cache whose DatabaseBackup stays as it was.
type earlier struct {
	client.Client
	was *v1.DatabaseBackup
}

func (c earlier) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if b, ok := o.(*v1.DatabaseBackup); ok && key.Name == c.was.Name {
		c.was.DeepCopyInto(b)
		return nil
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// Several controllers write the conditions of a DatabaseBackup. One that has not seen yet what another has written does
// not write the former state back.
func TestAVerificationDoesNotBringBackABackupThatWasRemoved(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	b := k.complete(k.ask("first", "x"))
	b.Annotations = map[string]string{naming.AnnotationVerify: "please"}
	k.must(k.api.Update(k.Context(), b))
	k.read("first", b)
	gone := removed.By{Archive: b.Status.Archive.Path, IDs: []string{b.Status.ID}, When: "just now"}
	k.must(removed.Note(k.Context(), k.api, gone, []v1.DatabaseBackup{*b}))

	base := k.base()
	base.Client, base.Now = earlier{k.reconciler.Client, b}, k.reconciler.Now
	r := &verification.Reconciler{
		Base: base,
		Pods: replaying{},
	}
	_, err := r.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	if !apierrors.IsConflict(err) {
		t.Errorf("its status is written on an earlier one: %v", err)
	}
	k.read("first", b)
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRemoved, "Removed")
}

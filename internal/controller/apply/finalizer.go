package apply

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"toban.dev/internal/naming"
)

// Hold puts our finalizer on an object: when it is deleted, it stays until LetGo. The object becomes what the API server answers.
func (w Writer) Hold(ctx context.Context, object client.Object) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.AddFinalizer(object, naming.Finalizer) {
		return nil
	}
	if err := w.Client.Patch(ctx, object, unchanged(before), client.FieldOwner(naming.FieldOwner)); err != nil {
		return fmt.Errorf("add the finalizer: %w", err)
	}
	return nil
}

// LetGo takes our finalizer off an object, after which it is gone.
func (w Writer) LetGo(ctx context.Context, object client.Object) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.RemoveFinalizer(object, naming.Finalizer) {
		return nil
	}
	err := w.Client.Patch(ctx, object, unchanged(before), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	return nil
}

// unchanged is a patch that is refused where somebody has changed the object meanwhile: others' finalizers are in the same list.
func unchanged(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"toban.dev/internal/naming"
)

// Hold puts our finalizer on an object, and with the same write annotations, where there are any: when it is deleted,
// it stays until LetGo. The object becomes what the API server answers.
func (w Writer) Hold(ctx context.Context, object client.Object, annotations map[string]string) error {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok || !controllerutil.AddFinalizer(object, naming.Finalizer) && len(annotations) == 0 {
		return nil
	}
	if len(annotations) > 0 {
		all := maps.Clone(annotations)
		for key, value := range object.GetAnnotations() {
			if _, ours := all[key]; !ours {
				all[key] = value
			}
		}
		object.SetAnnotations(all)
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

// KindGoes says that a CustomResourceDefinition is being deleted, or is gone. Its objects are deleted with it then,
// and nobody has wished that of each. It is read past the cache: the objects' deletion follows that of their kind,
// and may be seen before it.
func (w Writer) KindGoes(ctx context.Context, name string) (bool, error) {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{
		Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
	})
	err := w.Reader.Get(ctx, types.NamespacedName{Name: name}, definition)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	return definition.DeletionTimestamp != nil, nil
}

// unchanged is a patch that is refused where somebody has changed the object meanwhile: others'
// finalizers are in the same list.
func unchanged(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// Disown takes an owner off its objects of some kinds, of those that the options select. It reads past the cache, which
// may not have yet what was written last.
func (w Writer) Disown(
	ctx context.Context, owner metav1.Object, kinds []client.Object, options ...client.ListOption,
) error {
	for _, kind := range kinds {
		gvk, err := apiutil.GVKForObject(kind, w.Client.Scheme())
		if err != nil {
			return fmt.Errorf("find the kind of %T: %w", kind, err)
		}
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := w.Reader.List(ctx, all, options...); err != nil {
			return fmt.Errorf("list each %s of %s: %w", gvk.Kind, owner.GetName(), err)
		}
		for i := range all.Items {
			object := &all.Items[i]
			object.SetGroupVersionKind(gvk)
			if err := w.disown(ctx, owner, object); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w Writer) disown(ctx context.Context, owner metav1.Object, object *metav1.PartialObjectMetadata) error {
	before := object.DeepCopy()
	object.OwnerReferences = slices.DeleteFunc(object.OwnerReferences,
		func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() })
	if len(object.OwnerReferences) == len(before.OwnerReferences) {
		return nil
	}
	err := w.Client.Patch(ctx, object, unchanged(before), client.FieldOwner(naming.FieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of %s %s: %w", object.Kind, object.Name, err)
	}
	return nil
}

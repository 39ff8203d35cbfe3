package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"toban.dev/internal/naming"
)

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

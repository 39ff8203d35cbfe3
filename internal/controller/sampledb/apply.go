package sampledb

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// Waits after problems. Most end earlier, by a change that is watched.
const (
	waitUser = 30 * time.Second
	waitGone = time.Second
)

// apply is the one way to write an object: it creates it, or makes it as wanted
// where it differs, and writes nothing where it does not. An object of the same name that
// is not the SampleDB's is left alone, which is a problem of reason NameTaken.
func (r *Reconciler) apply(ctx context.Context, db *v1.SampleDB, want client.Object) error {
	gvk, err := apiutil.GVKForObject(want, r.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", want, err)
	}
	stamp(want)
	have, err := r.emptyOf(gvk)
	if err != nil {
		return err
	}
	have, err = find(ctx, r.Client, db, want.GetName(), have)
	if err != nil {
		return err
	}
	if have == nil {
		return r.create(ctx, db, want, gvk)
	}
	if err := mayWrite(have, db, gvk.Kind); err != nil {
		return err
	}
	return r.change(ctx, gvk, have, want)
}

func (r *Reconciler) emptyOf(gvk schema.GroupVersionKind) (client.Object, error) {
	object, err := r.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", gvk.Kind, err)
	}
	have, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %s is no object", gvk.Kind)
	}
	return have, nil
}

// stamp notes in an annotation how the object is wanted, so that a field that is
// no longer wanted is noticed too. An object may come with a stamp of its own.
func stamp(want client.Object) {
	annotations := maps.Clone(want.GetAnnotations())
	if annotations[naming.AnnotationApplied] != "" {
		return
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[naming.AnnotationApplied] = desired.Hash(want)
	want.SetAnnotations(annotations)
}

// create makes an object that the cache does not have. Where it is there after
// all, the cache is late (the next reconcile has it), or it is not ours.
func (r *Reconciler) create(ctx context.Context, db *v1.SampleDB, want client.Object, gvk schema.GroupVersionKind) error {
	err := r.Client.Create(ctx, want, client.FieldOwner(naming.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return refused(err, "create", gvk.Kind, want.GetName())
	}
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(gvk)
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return fmt.Errorf("read %s %s, which is in the way: %w", gvk.Kind, want.GetName(), err)
	}
	if err := mayWrite(have, db, gvk.Kind); err != nil {
		return err
	}
	return &problem{v1.ReasonCreating, fmt.Sprintf("waits to see %s %s, which was just created", gvk.Kind, want.GetName()), waitGone}
}

// mayWrite is nil when the object is the SampleDB's and lives.
func mayWrite(have metav1.Object, db *v1.SampleDB, kind string) error {
	owner := metav1.GetControllerOf(have)
	switch {
	case have.GetDeletionTimestamp() != nil:
		return &problem{v1.ReasonCreating, fmt.Sprintf("%s %s is being deleted; it will be made anew", kind, have.GetName()), waitGone}
	case ours(have, db):
		return nil
	case owner != nil && owner.Kind == "SampleDB" && owner.Name == db.Name:
		return &problem{v1.ReasonCreating, fmt.Sprintf("%s %s of the former SampleDB %s is still being removed", kind, have.GetName(), db.Name), waitGone}
	}
	return &problem{v1.ReasonNameTaken, fmt.Sprintf(
		"%s %s is not this SampleDB's, and its name is needed: delete or rename it, or give the SampleDB another name",
		kind, have.GetName()), waitUser}
}

// ours says that an object belongs to the SampleDB. A volume claim may outlive it,
// and then belongs to the next one of the name.
func ours(object metav1.Object, db *v1.SampleDB) bool {
	if metav1.IsControlledBy(object, db) {
		return true
	}
	labels := object.GetLabels()
	return isClaim(object) && metav1.GetControllerOf(object) == nil &&
		labels[naming.LabelManagedBy] == naming.ManagedBy && labels[naming.LabelSampleDB] == db.Name
}

func isClaim(object metav1.Object) bool {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return true
	case *metav1.PartialObjectMetadata:
		return o.Kind == "PersistentVolumeClaim"
	}
	return false
}

// change makes an object as wanted where it differs.
func (r *Reconciler) change(ctx context.Context, gvk schema.GroupVersionKind, have, want client.Object) error {
	wanted, err := content(want)
	if err != nil {
		return err
	}
	there, err := content(have)
	if err != nil {
		return err
	}
	if contains(there, wanted) {
		return nil
	}
	if len(have.GetManagedFields()) > 0 {
		if err := r.adoptFields(ctx, gvk, have); err != nil {
			return err
		}
	}
	object := &unstructured.Unstructured{Object: wanted}
	object.SetGroupVersionKind(gvk)
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(naming.FieldOwner), client.ForceOwnership)
	return refused(err, "change", gvk.Kind, want.GetName())
}

// adoptFields hands the fields of an object that we created over to server-side
// apply; else it would never remove one that is no longer wanted.
func (r *Reconciler) adoptFields(ctx context.Context, gvk schema.GroupVersionKind, have client.Object) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(have), live); err != nil {
		return fmt.Errorf("read the field owners of %s %s: %w", gvk.Kind, have.GetName(), err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(naming.FieldOwner), naming.FieldOwner)
	if err != nil {
		return fmt.Errorf("understand the field owners of %s %s: %w", gvk.Kind, have.GetName(), err)
	}
	if patch == nil {
		return nil
	}
	if err := r.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("change the field owners of %s %s: %w", gvk.Kind, have.GetName(), err)
	}
	return nil
}

// content is what of an object is wanted: all but the status and what the API server sets.
func content(object client.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", object.GetName(), err)
	}
	delete(out, "status")
	if meta, ok := out["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
		delete(meta, "managedFields")
	}
	return out, nil
}

// contains says that have has all that want asks for. What want leaves open, a
// default or somebody else may fill. A list must be the same length, so that an
// added item is noticed, but not that of the owners, where others may add themselves.
func contains(have, want any) bool {
	switch w := want.(type) {
	case nil:
		return true
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for key, value := range w {
			if key == "ownerReferences" {
				if !containsOwners(h[key], value) {
					return false
				}
			} else if !contains(h[key], value) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		if len(h) != len(w) {
			return false
		}
		for i := range w {
			if !contains(h[i], w[i]) {
				return false
			}
		}
		return true
	}
	return have == want
}

func containsOwners(have, want any) bool {
	h, _ := have.([]any)
	w, _ := want.([]any)
	for _, owner := range w {
		found := false
		for _, other := range h {
			found = found || contains(other, owner)
		}
		if !found {
			return false
		}
	}
	return true
}

// refused tells an object that the API server will never take from one that it could not take now.
func refused(err error, verb, kind, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &problem{v1.ReasonInvalidSpec, fmt.Sprintf("the API server refuses to %s %s %s: %s", verb, kind, name, words(err)), waitUser}
	case apierrors.IsForbidden(err):
		return &problem{v1.ReasonInvalidSpec, fmt.Sprintf("the cluster forbids to %s %s %s: %s", verb, kind, name, words(err)), waitUser}
	}
	return fmt.Errorf("%s %s %s: %w", verb, kind, name, err)
}

// words is the message of an API error, cut to what fits into a condition.
func words(err error) string {
	const most = 1000
	text := err.Error()
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

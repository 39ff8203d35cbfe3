// Package apply is the one way in which the controllers write the objects that they make: an object is created, or made
// as wanted where it differs, and nothing is written where it does not. One of the same name that belongs to somebody
// else is left alone. It must not know what an object is for.
package apply

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// Writer writes objects. Both fields must be set.
type Writer struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
}

// Owner is whose objects they are.
type Owner struct {
	Object metav1.Object
	// Kind is the owner's.
	Kind string
	// Adopts says of an object without an owner that it is this one's all the same; nil for never.
	Adopts func(metav1.Object) bool
}

// Cause is why an object could not be written, where that is no error that trying again mends.
type Cause string

// The causes.
const (
	Waiting Cause = "Waiting" // it will be possible in a moment: something is being deleted, or the cache is late
	Taken   Cause = "Taken"   // an object of the name is somebody else's
	Refused Cause = "Refused" // the cluster does not take the object
)

// Problem is an object that could not be written, with a sentence for the user.
type Problem struct {
	Cause   Cause
	Message string
}

func (p *Problem) Error() string { return p.Message }

// Apply makes an object as wanted. What the wanted object leaves open, a default or somebody else may fill.
func (w Writer) Apply(ctx context.Context, owner Owner, want client.Object) error {
	return w.write(ctx, owner, want, false)
}

// ApplyWhole is Apply for an object in whose spec nobody else may add to a list either, such as a container or a
// variable. Where want has a resourceVersion, it is only written if it is still that version.
func (w Writer) ApplyWhole(ctx context.Context, owner Owner, want client.Object) error {
	return w.write(ctx, owner, want, true)
}

func (w Writer) write(ctx context.Context, owner Owner, want client.Object, whole bool) error {
	gvk, err := apiutil.GVKForObject(want, w.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", want, err)
	}
	stamp(want)
	have, err := w.find(ctx, gvk, want)
	if err != nil {
		return err
	}
	if have == nil {
		return w.create(ctx, owner, want, gvk)
	}
	if err := MayWrite(have, owner, gvk.Kind); err != nil {
		return err
	}
	return w.change(ctx, gvk, have, want, whole)
}

// find is the object as the cache has it, nil where it has none. Of a Job the cache does not have the whole spec
// (sampledb.Slim), so that one is read past it.
func (w Writer) find(ctx context.Context, gvk schema.GroupVersionKind, want client.Object) (client.Object, error) {
	object, err := w.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", gvk.Kind, err)
	}
	have, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %s is no object", gvk.Kind)
	}
	reader := client.Reader(w.Client)
	if gvk.Kind == "Job" {
		reader = w.Reader
	}
	err = reader.Get(ctx, client.ObjectKeyFromObject(want), have)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", gvk.Kind, want.GetName(), err)
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
	version := want.GetResourceVersion() // which one was seen, is no part of what is wanted
	want.SetResourceVersion("")
	annotations[naming.AnnotationApplied] = desired.Hash(want)
	want.SetResourceVersion(version)
	want.SetAnnotations(annotations)
}

// IfUnchanged has an object written only where it is still as it was seen. Its number of Pods is what was seen: if an
// autoscaler has changed it meanwhile, a write must not change it back.
func IfUnchanged(want, seen client.Object) { want.SetResourceVersion(seen.GetResourceVersion()) }

// Create makes an object that the cache does not have. Where it is there after
// all, the cache is late (the next reconcile has it), or it is not the owner's.
func (w Writer) Create(ctx context.Context, owner Owner, want client.Object) error {
	gvk, err := apiutil.GVKForObject(want, w.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", want, err)
	}
	return w.create(ctx, owner, want, gvk)
}

func (w Writer) create(ctx context.Context, owner Owner, want client.Object, gvk schema.GroupVersionKind) error {
	want.SetResourceVersion("")
	err := w.Client.Create(ctx, want, client.FieldOwner(naming.FieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		return RefusedBy(err, "create", gvk.Kind, want.GetName())
	}
	have := &metav1.PartialObjectMetadata{}
	have.SetGroupVersionKind(gvk)
	if err := w.Reader.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return fmt.Errorf("read %s %s, which is in the way: %w", gvk.Kind, want.GetName(), err)
	}
	if err := MayWrite(have, owner, gvk.Kind); err != nil {
		return err
	}
	if have.GetLabels()[naming.LabelManagedBy] != naming.ManagedBy {
		// Somebody has taken the label off that brings it into the cache. It would never be seen again.
		_, err := w.send(ctx, gvk, want)
		return err
	}
	return &Problem{Waiting, fmt.Sprintf("waits to see %s %s, which was just created", gvk.Kind, want.GetName())}
}

// MayWrite is nil when the object is the owner's and lives.
func MayWrite(have metav1.Object, owner Owner, kind string) error {
	other := metav1.GetControllerOf(have)
	switch {
	case have.GetDeletionTimestamp() != nil:
		return &Problem{Waiting, fmt.Sprintf("%s %s is being deleted; it will be created again", kind, have.GetName())}
	case owner.Has(have):
		return nil
	case other != nil && other.Kind == owner.Kind && other.Name == owner.Object.GetName():
		return &Problem{Waiting, fmt.Sprintf("%s %s of the former %s %s is still being removed",
			kind, have.GetName(), owner.Kind, other.Name)}
	}
	return &Problem{Taken, fmt.Sprintf(
		"%s %s does not belong to this %s, which needs its name: delete or rename it, or give the %s another name",
		kind, have.GetName(), owner.Kind, owner.Kind)}
}

// Has says that an object is the owner's.
func (o Owner) Has(object metav1.Object) bool {
	return metav1.IsControlledBy(object, o.Object) || o.Adopts != nil && o.Adopts(object)
}

// change makes an object as wanted where it differs.
func (w Writer) change(ctx context.Context, gvk schema.GroupVersionKind, have, want client.Object, whole bool) error {
	wanted, err := content(want)
	if err != nil {
		return err
	}
	there, err := content(have)
	if err != nil {
		return err
	}
	if contains(there, wanted) && (!whole || !hasMore(there["spec"], wanted["spec"])) {
		return nil
	}
	if len(have.GetManagedFields()) > 0 {
		if err := w.adoptFields(ctx, gvk, want); err != nil {
			return err
		}
	}
	applied, err := w.send(ctx, gvk, want)
	if err != nil || !whole {
		return err
	}
	return w.removeAdded(ctx, applied, want)
}

// send writes an object by server-side apply, and returns it as it is then.
func (w Writer) send(
	ctx context.Context, gvk schema.GroupVersionKind, want client.Object,
) (*unstructured.Unstructured, error) {
	wanted, err := content(want)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: wanted}
	object.SetGroupVersionKind(gvk)
	object.SetResourceVersion(want.GetResourceVersion())
	err = w.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object),
		client.FieldOwner(naming.FieldOwner), client.ForceOwnership)
	return object, RefusedBy(err, "change", gvk.Kind, want.GetName())
}

// removeAdded takes out of an object that was just applied what others have added to the lists of its spec: server-side
// apply leaves an item to whoever put it in.
func (w Writer) removeAdded(ctx context.Context, applied *unstructured.Unstructured, want client.Object) error {
	wanted, err := content(want)
	if err != nil {
		return err
	}
	if contains(applied.Object["spec"], wanted["spec"]) && !hasMore(applied.Object["spec"], wanted["spec"]) {
		return nil
	}
	changed := applied.DeepCopy()
	changed.Object["spec"] = overlay(changed.Object["spec"], wanted["spec"])
	err = w.Client.Patch(ctx, changed, client.MergeFromWithOptions(applied, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(naming.FieldOwner))
	return RefusedBy(err, "change", applied.GetKind(), applied.GetName())
}

// adoptFields hands the fields of an object that we created over to server-side
// apply; else it would never remove one that is no longer wanted. Where a version is wanted, it is the next one then.
func (w Writer) adoptFields(ctx context.Context, gvk schema.GroupVersionKind, want client.Object) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(gvk)
	if err := w.Reader.Get(ctx, client.ObjectKeyFromObject(want), live); err != nil {
		return fmt.Errorf("read the field owners of %s %s: %w", gvk.Kind, want.GetName(), err)
	}
	before := live.ResourceVersion
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(naming.FieldOwner), naming.FieldOwner)
	if err != nil {
		return fmt.Errorf("understand the field owners of %s %s: %w", gvk.Kind, want.GetName(), err)
	}
	if patch == nil {
		return nil
	}
	if err := w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("change the field owners of %s %s: %w", gvk.Kind, want.GetName(), err)
	}
	if want.GetResourceVersion() == before {
		want.SetResourceVersion(live.ResourceVersion)
	}
	return nil
}

// Remove deletes an object that is no longer wanted, where it is there and is the owner's. The object
// says which by its kind, namespace and name.
func (w Writer) Remove(ctx context.Context, owner Owner, unwanted client.Object) error {
	gvk, err := apiutil.GVKForObject(unwanted, w.Client.Scheme())
	if err != nil {
		return fmt.Errorf("find the kind of %T: %w", unwanted, err)
	}
	have, err := w.find(ctx, gvk, unwanted)
	if err != nil || have == nil || !owner.Has(have) || have.GetDeletionTimestamp() != nil {
		return err
	}
	uid := have.GetUID()
	err = w.Client.Delete(ctx, have, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", gvk.Kind, have.GetName(), err)
	}
	return nil
}

// RefusedBy tells an object that the API server will never take from one that it could not take now.
func RefusedBy(err error, verb, kind, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &Problem{Refused, fmt.Sprintf("the API server refuses to %s %s %s: %s", verb, kind, name, words(err))}
	case apierrors.IsForbidden(err):
		return &Problem{Refused, fmt.Sprintf("the cluster forbids to %s %s %s: %s", verb, kind, name, words(err))}
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

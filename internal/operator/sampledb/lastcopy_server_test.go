package sampledb

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

const modelNamespace = "ns"

var modelScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// The kinds that the model keeps. Others can be created, and are never there.
const (
	kindSampleDB   = "SampleDB"
	kindBackup     = "DatabaseBackup"
	kindClaim      = "PersistentVolumeClaim"
	kindSet        = "StatefulSet"
	kindPod        = "Pod"
	kindJob        = "Job"
	kindLease      = "Lease"
	kindConfig     = "ConfigMap"
	kindClass      = "StorageClass"
	kindDefinition = "CustomResourceDefinition"
)

func kindOf(object runtime.Object) string {
	switch o := object.(type) {
	case *v1.SampleDB, *v1.SampleDBList:
		return kindSampleDB
	case *v1.DatabaseBackup, *v1.DatabaseBackupList:
		return kindBackup
	case *corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList:
		return kindClaim
	case *appsv1.StatefulSet:
		return kindSet
	case *corev1.Pod, *corev1.PodList:
		return kindPod
	case *batchv1.Job, *batchv1.JobList:
		return kindJob
	case *coordinationv1.Lease:
		return kindLease
	case *corev1.ConfigMap:
		return kindConfig
	case *storagev1.StorageClass, *storagev1.StorageClassList:
		return kindClass
	case *metav1.PartialObjectMetadata:
		return o.Kind
	case *metav1.PartialObjectMetadataList:
		return strings.TrimSuffix(o.Kind, "List")
	}
	return ""
}

type modelKey struct{ kind, name string }

// apiServer is a model of the API server, with one namespace: objects with versions, finalizers and owners. What lies
// in it is never changed, only replaced.
type apiServer struct {
	*rand.Rand
	now     time.Time
	version int
	objects map[modelKey]client.Object
	// late are the kinds of which the operator's cache is not up to date, as it has them.
	late map[string]map[modelKey]client.Object
	// claimGoes is told of each claim that is marked for deletion or gone, and by whom.
	claimGoes func(claim *corev1.PersistentVolumeClaim, by string)
}

// have is an object of the API server, nil where it has none. It may not be changed.
func have[T client.Object](s *apiServer, kind, name string) T {
	found, _ := s.objects[modelKey{kind, name}].(T)
	return found
}

// all are the objects of a kind, by name.
func all[T client.Object](s *apiServer, kind string) []T {
	return listed[T](s.objects, kind)
}

func listed[T client.Object](objects map[modelKey]client.Object, kind string) []T {
	var out []T
	for k, o := range objects {
		if object, ok := o.(T); ok && k.kind == kind {
			out = append(out, object)
		}
	}
	slices.SortFunc(out, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// cached is what the operator's cache has of a kind.
func (s *apiServer) cached(kind string) map[modelKey]client.Object {
	if objects, ok := s.late[kind]; ok {
		return objects
	}
	return s.objects
}

func (s *apiServer) put(kind string, object client.Object) {
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	s.objects[modelKey{kind, object.GetName()}] = object
}

// fallBehind keeps a kind of the cache as it is now.
func (s *apiServer) fallBehind(kind string) {
	if _, already := s.late[kind]; !already {
		s.late[kind] = maps.Clone(s.objects)
	}
}

func gone(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(kind)}, name)
}

func conflict(kind, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: strings.ToLower(kind)}, name,
		fmt.Errorf("somebody has changed it"))
}

func (s *apiServer) create(object client.Object) error {
	kind := kindOf(object)
	if kind == "" {
		return nil
	}
	if s.objects[modelKey{kind, object.GetName()}] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: strings.ToLower(kind)}, object.GetName())
	}
	s.version++
	object.SetUID(types.UID(fmt.Sprintf("%08d", s.version)))
	object.SetCreationTimestamp(metav1.NewTime(s.now))
	object.SetGeneration(1)
	object.SetNamespace(modelNamespace)
	if kind == kindClaim {
		object.SetFinalizers([]string{"kubernetes.io/pvc-protection"})
	}
	s.put(kind, object.DeepCopyObject().(client.Object)) //nolint:errcheck // it is of that kind
	object.SetResourceVersion(fmt.Sprint(s.version))
	return nil
}

// change makes another version of an object that is there, and removes it when nothing holds it any more.
func change[T client.Object](s *apiServer, kind string, was T, how func(T)) {
	object := was.DeepCopyObject().(T) //nolint:errcheck // it is of that kind
	how(object)
	if spec(was) != nil && !equality.Semantic.DeepEqual(spec(was), spec(object)) {
		object.SetGeneration(was.GetGeneration() + 1)
	}
	s.put(kind, object)
	if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
		delete(s.objects, modelKey{kind, object.GetName()})
	}
}

func spec(object client.Object) any {
	switch o := object.(type) {
	case *v1.SampleDB:
		return o.Spec
	case *appsv1.StatefulSet:
		return o.Spec
	}
	return nil
}

// remove deletes an object as the API server does: with a finalizer, also that of a propagation, it stays for a while.
func (s *apiServer) remove(kind, name, by string, policy metav1.DeletionPropagation) {
	object := s.objects[modelKey{kind, name}]
	if object == nil || object.GetDeletionTimestamp() != nil {
		return
	}
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		s.claimGoes(claim, by)
	}
	finalizer := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationOrphan:     metav1.FinalizerOrphanDependents,
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents,
	}[policy]
	at := metav1.NewTime(s.now)
	change(s, kind, object, func(o client.Object) {
		o.SetDeletionTimestamp(&at)
		if finalizer != "" {
			o.SetFinalizers(append(slices.Clone(o.GetFinalizers()), finalizer))
		}
	})
}

// into copies what is there into an object that is asked for.
func into(object, found client.Object) error {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		partial.ObjectMeta = metaOf(found)
		return nil
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func metaOf(object client.Object) metav1.ObjectMeta {
	field := reflect.ValueOf(object).Elem().FieldByName("ObjectMeta")
	return *field.Addr().Interface().(*metav1.ObjectMeta).DeepCopy() //nolint:errcheck // it is of that kind
}

// killed is the end of the operator's process, in the middle of a reconcile.
type killed struct{}

// operatorClient is the API server as the operator has it: with a cache that may be late, and calls that fail, whether
// they have been carried out or not.
type operatorClient struct {
	client.Client // what nobody needs here ends the test
	*apiServer
	// past reads past the cache.
	past bool
	// between is what happens between two calls.
	between func()
	// trouble says how often, of a thousand calls, something goes wrong.
	trouble *int
	read    func(*v1.SampleDB)
}

// call carries out a call, or does not, or does so and the answer is lost; or the operator ends before or after it.
func (c *operatorClient) call(do func() error) error {
	c.between()
	fate := c.IntN(1000) - *c.trouble
	if fate >= 0 {
		return do()
	}
	switch c.IntN(6) {
	case 0:
		panic(killed{})
	case 1:
		_ = do()
		panic(killed{})
	case 2:
		_ = do()
		return apierrors.NewTimeoutError("the answer is lost", 1)
	case 3:
		return conflict("object", "x")
	}
	return apierrors.NewInternalError(fmt.Errorf("the API server is not well"))
}

func (c *operatorClient) Scheme() *runtime.Scheme { return modelScheme }

func (c *operatorClient) view(kind string) map[modelKey]client.Object {
	if c.past {
		return c.objects
	}
	return c.cached(kind)
}

func (c *operatorClient) Get(
	_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption,
) error {
	kind := kindOf(object)
	found := c.view(kind)[modelKey{kind, key.Name}]
	if !c.past {
		if found == nil {
			return gone(kind, key.Name)
		}
		if db, ok := found.(*v1.SampleDB); ok {
			c.read(db)
		}
		return into(object, found)
	}
	return c.call(func() error {
		if found = c.objects[modelKey{kind, key.Name}]; found == nil {
			return gone(kind, key.Name)
		}
		return into(object, found)
	})
}

func (c *operatorClient) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := kindOf(list)
	read := func() error {
		o := (&client.ListOptions{}).ApplyOptions(options)
		var items []runtime.Object
		for _, object := range listed[client.Object](c.view(kind), kind) {
			if o.LabelSelector == nil || o.LabelSelector.Matches(labelSet(object.GetLabels())) {
				items = append(items, asItem(list, object))
			}
		}
		return meta.SetList(list, items)
	}
	if c.past {
		return c.call(read)
	}
	return read()
}

// asItem is an object as a list has it.
func asItem(list client.ObjectList, object client.Object) runtime.Object {
	if _, partial := list.(*metav1.PartialObjectMetadataList); partial {
		return &metav1.PartialObjectMetadata{ObjectMeta: metaOf(object)}
	}
	return object.DeepCopyObject()
}

type labelSet map[string]string

func (l labelSet) Has(label string) bool              { _, ok := l[label]; return ok }
func (l labelSet) Get(label string) string            { return l[label] }
func (l labelSet) Lookup(label string) (string, bool) { v, ok := l[label]; return v, ok }

func (c *operatorClient) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	o := (&client.CreateOptions{}).ApplyOptions(options)
	return c.call(func() error {
		if len(o.DryRun) > 0 {
			return nil
		}
		return c.create(object)
	})
}

// wholeObject is what is applied.
type wholeObject interface {
	UnstructuredContent() map[string]any
	GroupVersionKind() schema.GroupVersionKind
}

// Apply is server-side apply of the only one who applies: spec, labels, annotations and owners become what is wanted.
func (c *operatorClient) Apply(_ context.Context, config runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	applied := config.(wholeObject) //nolint:errcheck // it is of that kind
	content := applied.UnstructuredContent()
	wanted, err := modelScheme.New(applied.GroupVersionKind())
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, wanted); err != nil {
		return err
	}
	want := wanted.(client.Object) //nolint:errcheck // it is of that kind
	return c.call(func() error {
		kind := kindOf(want)
		found := c.objects[modelKey{kind, want.GetName()}]
		if found == nil {
			return c.create(want)
		}
		change(c.apiServer, kind, found, func(object client.Object) {
			object.SetLabels(want.GetLabels())
			object.SetAnnotations(want.GetAnnotations())
			object.SetOwnerReferences(want.GetOwnerReferences())
			setContent(object, want)
		})
		return nil
	})
}

func setContent(object, want client.Object) {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		o.Spec = want.(*corev1.PersistentVolumeClaim).Spec //nolint:errcheck // it is of that kind
	case *appsv1.StatefulSet:
		o.Spec = want.(*appsv1.StatefulSet).Spec //nolint:errcheck // it is of that kind
	case *corev1.ConfigMap:
		o.Data = want.(*corev1.ConfigMap).Data //nolint:errcheck // it is of that kind
	}
}

// Patch is of finalizers, annotations and owners; all of the operator's are refused where somebody has changed the
// object.
func (c *operatorClient) Patch(
	_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption,
) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	return c.call(func() error {
		kind := kindOf(object)
		found := c.objects[modelKey{kind, object.GetName()}]
		switch {
		case found == nil || found.GetUID() != object.GetUID():
			return gone(kind, object.GetName())
		case !strings.Contains(string(data), `"resourceVersion":"`+found.GetResourceVersion()+`"`):
			return conflict(kind, object.GetName())
		}
		change(c.apiServer, kind, found, func(o client.Object) {
			o.SetFinalizers(object.GetFinalizers())
			o.SetAnnotations(object.GetAnnotations())
			o.SetOwnerReferences(object.GetOwnerReferences())
		})
		if now := c.objects[modelKey{kind, object.GetName()}]; now != nil {
			return into(object, now)
		}
		return nil
	})
}

func (c *operatorClient) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	return c.call(func() error {
		kind := kindOf(object)
		found := c.objects[modelKey{kind, object.GetName()}]
		switch {
		case found == nil:
			return gone(kind, object.GetName())
		case o.Preconditions != nil && o.Preconditions.UID != nil && *o.Preconditions.UID != found.GetUID():
			return conflict(kind, object.GetName())
		}
		policy := metav1.DeletePropagationBackground
		if o.PropagationPolicy != nil {
			policy = *o.PropagationPolicy
		}
		c.remove(kind, object.GetName(), byOperator, policy)
		return nil
	})
}

func (c *operatorClient) Status() client.SubResourceWriter { return statusWriter{server: c} }

type statusWriter struct {
	client.SubResourceWriter
	server *operatorClient
}

func (c statusWriter) Patch(
	_ context.Context, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return c.server.call(func() error {
		found := have[*v1.SampleDB](c.server.apiServer, kindSampleDB, object.GetName())
		wanted, ok := object.(*v1.SampleDB)
		if !ok || found == nil || found.UID != object.GetUID() {
			return gone(kindSampleDB, object.GetName())
		}
		change(c.server.apiServer, kindSampleDB, found,
			func(db *v1.SampleDB) { db.Status = *wanted.Status.DeepCopy() })
		return into(object, c.server.objects[modelKey{kindSampleDB, object.GetName()}])
	})
}

package api

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
	"toban.dev/internal/operator/sampledb"
)

const (
	hostileMany = 30         // of each kind
	hostileData = 900 << 10  // of a ConfigMap: the API server takes 1 MiB
	hostileNote = 200 << 10  // of annotations: it takes 256 KiB
	hostileMost = 8 << 20    // that the cache may take for all of them
	hostileKind = "SampleDB" // whose they pretend to be
)

// Who may write into one namespace makes large objects there, with our labels, and some that seem to have an owner of
// ours. The operator's cache, which is for all namespaces, keeps next to nothing of them. A real one is of 384 MiB, and
// has to bear some hundreds.
func TestAHostileNamespaceDoesNotFillTheCache(t *testing.T) {
	runAlone(t) // nobody else may use the heap meanwhile
	w := newWorld(t)
	writesPastUs(w.server, w.namespace) // else the answers stay in memory
	w.flood()
	before := heap()
	c := w.cacheOf(&corev1.ConfigMap{}, &batchv1.Job{}, &corev1.PersistentVolumeClaim{})
	if took := heap() - before; took > hostileMost {
		t.Errorf("the cache takes %d MiB", took>>20)
	}
	from, err := cached.NewClient(w.server, client.Options{
		Scheme: scheme, Mapper: w.api.RESTMapper(), Cache: &client.CacheOptions{Reader: c},
	})
	w.must(err)
	var all corev1.ConfigMapList
	w.must(from.List(t.Context(), &all, client.InNamespace(w.namespace)))
	if len(all.Items) != 2*hostileMany || len(all.Items[0].Data) > 0 ||
		all.Items[0].Labels[naming.LabelSampleDB] == "" {
		t.Errorf("there are %d ConfigMaps, of which one is %+v", len(all.Items), all.Items[0].ObjectMeta)
	}
	one := &corev1.ConfigMap{}
	w.must(from.Get(t.Context(), types.NamespacedName{Namespace: w.namespace, Name: "x-own-0"}, one))
	if len(one.Data["a"]) != hostileData || one.Annotations[cached.NotKept] != "" {
		t.Errorf("who asks for one by its name gets %d bytes of data, and %v", len(one.Data["a"]), one.Annotations)
	}
	runtime.KeepAlive(c)
}

// heap is how many bytes are in use.
func heap() int64 {
	var is runtime.MemStats
	for range 3 { // what was in use until then goes with the second
		runtime.GC()
	}
	runtime.ReadMemStats(&is)
	return int64(is.HeapAlloc)
}

// flood makes the objects.
func (w *world) flood() {
	w.Helper()
	large := strings.Repeat("x", hostileData)
	for i := range hostileMany {
		foreign, own := w.hostile("y-foreign", i, ""), w.hostile("x-own", i, "")
		controls := true
		own.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1.GroupVersion.String(), Kind: hostileKind, Name: "x", UID: "u", Controller: &controls,
		}}
		for _, object := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: foreign, Data: map[string]string{"a": large}},
			&corev1.ConfigMap{ObjectMeta: own, Data: map[string]string{"a": large}},
			&batchv1.Job{ObjectMeta: w.hostile("job", i, large), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}},
				},
			}}},
			&corev1.PersistentVolumeClaim{ObjectMeta: w.hostile("data-x", i, large),
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					},
				}},
		} {
			w.must(w.api.Create(w.Context(), object))
		}
	}
}

// hostile is what an object says of itself.
func (w *world) hostile(name string, n int, note string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: w.namespace, Name: fmt.Sprintf("%s-%d", name, n),
		Labels: map[string]string{naming.LabelManagedBy: naming.ManagedBy, naming.LabelSampleDB: "x"},
	}
	if note != "" {
		out.Annotations = map[string]string{naming.AnnotationSources: note[:hostileNote]}
	}
	return out
}

// cacheOf is the operator's cache, with what there is of some kinds.
func (w *world) cacheOf(kinds ...client.Object) cache.Cache {
	w.Helper()
	options := sampledb.CacheOptions()
	options.Scheme, options.Mapper = scheme, w.api.RESTMapper()
	options.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	c, err := cache.New(w.server, options)
	w.must(err)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	for _, kind := range kinds {
		_, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		w.must(err)
	}
	go func() { ended <- c.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the cache ended: %v", err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		w.Fatal("the cache does not begin")
	}
	return c
}

// Package freshness remembers the statuses that a controller has written, until its cache has them too. A cache is
// behind after every write, and for up to a minute after the API server was away: a status compared with an old one
// would be held for written, and a lie would stay until something else changes. With a status go the annotations of
// that moment: beside a status that says how a request has ended, the annotation that has asked for it would ask anew.
package freshness

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Statuses are the last written ones, by the objects' UIDs. The zero value is ready for use; it is
// safe for concurrent use.
type Statuses[S any] struct {
	mu   sync.Mutex
	last map[types.UID]entry[S]
}

type entry[S any] struct {
	version     string
	status      S
	annotations map[string]string
}

// Latest is the status that an object from the cache really has, as far as this controller knows. Where that is newer,
// the object gets the annotations of the same moment.
func (w *Statuses[S]) Latest(object metav1.Object, cached S) S {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.last[object.GetUID()]
	if !ok {
		return cached
	}
	// Resource versions of one kind are numbers that grow (Kubernetes 1.35 documentation, "Resource versions").
	if order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(),
		e.version); err != nil || order >= 0 {
		delete(w.last, object.GetUID())
		return cached
	}
	object.SetAnnotations(maps.Clone(e.annotations))
	return e.status
}

// Note keeps what was written. The object is the API server's answer.
func (w *Statuses[S]) Note(object metav1.Object, status S) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[types.UID]entry[S]{}
	}
	w.last[object.GetUID()] = entry[S]{object.GetResourceVersion(), status, maps.Clone(object.GetAnnotations())}
}

// Forget drops what is kept of an object that is gone.
func (w *Statuses[S]) Forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, uid)
}

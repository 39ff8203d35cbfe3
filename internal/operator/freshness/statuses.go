// Package freshness remembers the statuses that a controller has written, until its cache has them too. A cache is
// behind after every write, and for up to a minute after the API server was away: a status compared with an old one
// would be held for written, and a lie would stay until something else changes. With a status go the annotations of
// that moment: beside a status that says how a request has ended, the annotation that has asked for it would ask anew.
package freshness

import (
	"context"
	"fmt"
	"maps"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
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

// maxMessage is the longest message of a condition (characters). Kubernetes takes 32768; nobody reads so much.
const maxMessage = 4000

// Message keeps a text within what a condition should have.
func Message(text string) string {
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	return text
}

// Alone writes the status of an object of which nobody else writes it. It is false where the object is gone.
func Alone(ctx context.Context, c client.Client, was, changed client.Object) (bool, error) {
	return patch(ctx, c, changed, client.MergeFrom(was))
}

// Shared writes a status that others write too: only on the version that was read. A patch has all conditions, and
// would write back what another has changed since (a JSON merge patch replaces lists, RFC 7386). Where it is refused
// with a conflict, the error has the caller look again.
func Shared(ctx context.Context, c client.Client, was, changed client.Object) (bool, error) {
	return patch(ctx, c, changed, client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{}))
}

func patch(ctx context.Context, c client.Client, changed client.Object, by client.Patch) (bool, error) {
	err := c.Status().Patch(ctx, changed, by, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("write the status of %s: %w", changed.GetName(), err)
	}
	return true, nil
}

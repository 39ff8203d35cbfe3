package freshness

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Identities are the UIDs of the objects that a controller has met, by their names: of an object that is gone only the
// name is known. The zero value is ready for use; it is safe for concurrent use.
type Identities struct {
	mu  sync.Mutex
	all map[types.NamespacedName]types.UID
}

// Meet remembers an object. It returns the UID of the former one of its name, "" where there was none.
func (i *Identities) Meet(object metav1.Object) (former types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	if former = i.all[key]; former == object.GetUID() {
		return ""
	}
	if i.all == nil {
		i.all = map[types.NamespacedName]types.UID{}
	}
	i.all[key] = object.GetUID()
	return former
}

// Leave forgets an object that is gone, and returns its UID, "" where it was never met.
func (i *Identities) Leave(key types.NamespacedName) types.UID {
	i.mu.Lock()
	defer i.mu.Unlock()
	uid := i.all[key]
	delete(i.all, key)
	return uid
}

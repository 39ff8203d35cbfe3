// Package secrets notices when users' Secrets change, where their namespaces let the operator watch them, one
// by one and by name. Of what is in them it keeps a digest. Where it is not allowed to, it knows nothing, which
// is said and is no error.
package secrets

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// Pauses before a watch is tried again.
const (
	pauseBroken = time.Second
	// firstForbidden and lastForbidden are when it is tried again whether somebody has allowed it: less and less often.
	firstForbidden = 5 * time.Second
	lastForbidden  = 10 * time.Minute
	// settling is how long a new watch may take to tell of a Secret that is there.
	settling = 500 * time.Millisecond
)

// Follower follows Secrets for the objects of one controller. Use New.
type Follower struct {
	client kubernetes.Interface
	// digest tells one content from another, and nothing about it.
	digest func(content []byte) string
	// changed is told which object follows a Secret that has changed.
	changed chan event.GenericEvent

	mu      sync.Mutex
	watches map[types.NamespacedName]*following
}

type following struct {
	users  map[types.NamespacedName]bool
	cancel context.CancelFunc
	// settled says that the version is known, or that it can't be.
	settled bool
	version string
}

// absent is the version of a Secret that is not there.
const absent = "absent"

// New makes a Follower. The digest must be the same after a restart.
func New(client kubernetes.Interface, digest func([]byte) string) *Follower {
	return &Follower{
		client: client, digest: digest, changed: make(chan event.GenericEvent),
		watches: map[types.NamespacedName]*following{},
	}
}

// Changed has an event for each object of which a Secret has changed: its name, and nothing else. A
// controller has to take them.
func (f *Follower) Changed() <-chan event.GenericEvent { return f.changed }

// Follow sets which Secrets an object follows; without names it follows none any more.
func (f *Follower) Follow(user types.NamespacedName, names ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, w := range f.watches {
		if w.users[user] && (key.Namespace != user.Namespace || !slices.Contains(names, key.Name)) {
			delete(w.users, user)
			if len(w.users) == 0 {
				w.cancel()
				delete(f.watches, key)
			}
		}
	}
	for _, name := range names {
		key := types.NamespacedName{Namespace: user.Namespace, Name: name}
		w, ok := f.watches[key]
		if !ok {
			ctx, cancel := context.WithCancel(context.Background()) // it ends with the last who follows
			w = &following{users: map[types.NamespacedName]bool{}, cancel: cancel}
			f.watches[key] = w
			go f.run(ctx, key)
		}
		w.users[user] = true
	}
}

// Versions are those of the Secrets that an object follows, by their names: something else after each change, and ""
// where that can't be known. They are not settled yet while that is being found out.
func (f *Follower) Versions(user types.NamespacedName) (versions map[string]string, settled bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	versions, settled = map[string]string{}, true
	for key, w := range f.watches {
		if w.users[user] {
			versions[key.Name] = w.version
			settled = settled && w.settled
		}
	}
	return versions, settled
}

// run watches one Secret until nobody follows it any more.
func (f *Follower) run(ctx context.Context, key types.NamespacedName) {
	forbidden := firstForbidden
	for ctx.Err() == nil {
		stream, err := f.client.CoreV1().Secrets(key.Namespace).
			Watch(ctx,
				metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name).String()})
		pause := pauseBroken
		switch {
		case apierrors.IsForbidden(err):
			f.set(ctx, key, "")
			pause = forbidden + rand.N(forbidden) //nolint:gosec // no secret
			forbidden = min(2*forbidden, lastForbidden)
		case err == nil:
			forbidden = firstForbidden
			f.followStream(ctx, key, stream)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// followStream takes what a watch tells until it ends. It begins with the Secret as it is; of one that is
// not there it tells nothing.
func (f *Follower) followStream(ctx context.Context, key types.NamespacedName, stream watch.Interface) {
	defer stream.Stop()
	quiet := time.After(settling)
	for {
		select {
		case <-ctx.Done():
			return
		case <-quiet:
			if !f.isKnown(key) {
				f.set(ctx, key, absent)
			}
		case e, open := <-stream.ResultChan():
			if !open || e.Type == watch.Error {
				return
			}
			version := absent
			if secret, ok := e.Object.(*corev1.Secret); ok && e.Type != watch.Deleted {
				version = f.digest(content(secret))
			}
			f.set(ctx, key, version)
		}
	}
}

// content is what is in a Secret. That somebody has put an annotation on it changes nothing.
func content(secret *corev1.Secret) []byte {
	text, err := json.Marshal(secret.Data) // the keys of a map are sorted
	if err != nil {
		return nil // a map of bytes can always be encoded
	}
	return text
}

// isKnown says that a version is known: of one that was forbidden until now none is.
func (f *Follower) isKnown(key types.NamespacedName) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.watches[key]
	return ok && w.version != ""
}

// set notes a version, and tells those who follow the Secret when it is news.
func (f *Follower) set(ctx context.Context, key types.NamespacedName, version string) {
	f.mu.Lock()
	w, ok := f.watches[key]
	if !ok || w.settled && w.version == version {
		f.mu.Unlock()
		return
	}
	w.settled, w.version = true, version
	var users []types.NamespacedName
	for user := range w.users {
		users = append(users, user)
	}
	f.mu.Unlock()
	for _, user := range users {
		object := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: user.Namespace, Name: user.Name},
		}
		select {
		case f.changed <- event.GenericEvent{Object: client.Object(object)}:
		case <-ctx.Done():
			return
		}
	}
}

package console

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

const (
	// listPatience is how long a list may take, watchPatience after which a watch is begun again.
	listPatience  = 15 * time.Second
	watchPatience = 10 * time.Minute
	// shortestPause is between two tries, longestPause when many have failed.
	shortestPause = 500 * time.Millisecond
	longestPause  = 5 * time.Second
)

// source is a kind of objects that is followed.
type source struct {
	// resource is its name in rules of access.
	resource string
	list     func() client.ObjectList
	only     []client.ListOption
}

// sources are all of them. Of Pods those of SampleDBs are followed, and of events those about our kinds.
var sources = []source{
	{resource: resourceDatabases, list: func() client.ObjectList { return &v1.SampleDBList{} }},
	{resource: resourceBackups, list: func() client.ObjectList { return &v1.DatabaseBackupList{} }},
	{resource: resourceRestores, list: func() client.ObjectList { return &v1.DatabaseRestoreList{} }},
	{resource: resourceDrills, list: func() client.ObjectList { return &v1.FaultDrillList{} }},
	{resource: resourceEvents, list: func() client.ObjectList { return &corev1.EventList{} },
		only: []client.ListOption{client.MatchingFields{"involvedObject.apiVersion": v1.GroupVersion.String()}}},
	{resource: resourcePods, list: func() client.ObjectList { return &corev1.PodList{} },
		only: []client.ListOption{client.HasLabels{naming.LabelSampleDB}}},
}

const (
	resourceDatabases = "sampledbs.toban.dev"
	resourceBackups   = "databasebackups.toban.dev"
	resourceRestores  = "databaserestores.toban.dev"
	resourceDrills    = "faultdrills.toban.dev"
	resourceEvents    = "events"
	resourcePods      = "pods"
)

// feed is what is known of a namespace, or of all, by watches.
type feed struct {
	api       client.WithWatch
	namespace string

	mu      sync.Mutex
	objects map[string]map[client.ObjectKey]client.Object
	trouble map[string]Trouble
	next    chan struct{}
}

func newFeed(api client.WithWatch, namespace string) *feed {
	return &feed{api: api, namespace: namespace, objects: map[string]map[client.ObjectKey]client.Object{},
		trouble: map[string]Trouble{}, next: make(chan struct{})}
}

// run follows all sources until the context ends.
func (f *feed) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range sources {
		all.Go(func() { f.follow(ctx, s) })
	}
	all.Wait()
}

// follow lists and watches a kind, and begins again when that fails or ends.
func (f *feed) follow(ctx context.Context, s source) {
	pause := shortestPause
	for ctx.Err() == nil {
		err := f.once(ctx, s, func() { pause = shortestPause })
		if err != nil && ctx.Err() == nil {
			f.fails(s, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// once lists a kind, says that this went well, and takes changes until the watch ends, as each does after a while.
func (f *feed) once(ctx context.Context, s source, well func()) error {
	list := s.list()
	options := append([]client.ListOption{client.InNamespace(f.namespace)}, s.only...)
	limit, cancel := context.WithTimeout(ctx, listPatience)
	err := f.api.List(limit, list, options...)
	cancel()
	if err != nil {
		return err //nolint:wrapcheck // fails looks what it is
	}
	if err := f.replace(s, list); err != nil {
		return err
	}
	well()
	limit, cancel = context.WithTimeout(ctx, watchPatience)
	defer cancel()
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	events, err := f.api.Watch(limit, s.list(), append(options, from)...)
	if err != nil {
		return err //nolint:wrapcheck // the same
	}
	defer events.Stop()
	return f.take(limit, s, events)
}

// take takes changes until the watch ends.
func (f *feed) take(ctx context.Context, s source, events watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, more := <-events.ResultChan():
			switch {
			case !more:
				return nil
			case event.Type == watch.Error:
				return apierrors.FromObject(event.Object)
			}
			f.change(s, event)
		}
	}
}

// replace takes a whole list: what was wrong is over.
func (f *feed) replace(s source, list client.ObjectList) error {
	all := map[client.ObjectKey]client.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("a list of %s has a %T", s.resource, item)
		}
		all[client.ObjectKeyFromObject(object)] = object
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the list of %s: %w", s.resource, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[s.resource] = all
	delete(f.trouble, s.resource)
	f.tell()
	return nil
}

// change takes one change. An object is never changed in place, so that views may be made of it at any time.
func (f *feed) change(s source, event watch.Event) {
	object, ok := event.Object.(client.Object)
	if !ok || event.Type == watch.Bookmark {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := client.ObjectKeyFromObject(object); event.Type == watch.Deleted {
		delete(f.objects[s.resource], key)
	} else {
		f.objects[s.resource][key] = object
	}
	f.tell()
}

// fails notes why a kind can't be followed. What was seen before stays, but for what may not be read any more.
func (f *feed) fails(s source, err error) {
	trouble := troubleOf(err, "list and watch "+s.resource)
	trouble.Namespace = f.namespace
	now := metav1.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	trouble.Since = &now
	if before, there := f.trouble[s.resource]; there && before.Kind == trouble.Kind {
		trouble.Since = before.Since
	}
	if trouble.Kind == troubleForbidden {
		delete(f.objects, s.resource)
	}
	f.trouble[s.resource] = trouble
	f.tell()
}

// tell wakes those who wait for a change. It is called with the lock.
func (f *feed) tell() {
	close(f.next)
	f.next = make(chan struct{})
}

// changed is closed at the next change.
func (f *feed) changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next
}

// troubles are what is wrong now, that with the databases themselves first; those that are away are one.
func (f *feed) troubles() []Trouble {
	f.mu.Lock()
	all := maps.Clone(f.trouble)
	f.mu.Unlock()
	out := []Trouble{}
	away := false
	for _, s := range sources {
		t, there := all[s.resource]
		if !there || t.Kind == troubleAway && away {
			continue
		}
		away = away || t.Kind == troubleAway
		out = append(out, t)
	}
	return out
}

// troubleOf says what an error of the API means for the user, who lacks a right if it is one of rights.
func troubleOf(err error, right string) Trouble {
	var network net.Error
	switch {
	case apierrors.IsForbidden(err):
		return Trouble{Kind: troubleForbidden, Right: right, Message: err.Error()}
	case errors.As(err, &network), apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err):
		return Trouble{Kind: troubleAway, Message: err.Error()}
	}
	return Trouble{Kind: troubleFailed, Message: err.Error()}
}

// known says that a kind was listed since its last trouble with rights.
func (f *feed) known(resource string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[resource] != nil
}

// of are the objects of a kind that are wanted.
func of[T any, P interface {
	*T
	client.Object
}](f *feed, resource string, wanted func(P) bool) (out []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, object := range f.objects[resource] {
		if one, ok := object.(P); ok && wanted(one) {
			out = append(out, *one)
		}
	}
	return out
}

// databases are all SampleDBs.
func (f *feed) databases() []v1.SampleDB {
	return of(f, resourceDatabases, func(*v1.SampleDB) bool { return true })
}

// database is a SampleDB, nil where there is none, and what belongs to it.
func (f *feed) database(namespace, name string) (*v1.SampleDB, Seen) {
	dbs := of(f, resourceDatabases, func(db *v1.SampleDB) bool {
		return db.Namespace == namespace && db.Name == name
	})
	if len(dbs) == 0 {
		return nil, Seen{}
	}
	uid := dbs[0].UID
	return &dbs[0], Seen{
		Databases: dbs, KnowsPods: f.known(resourcePods), KnowsBackups: f.known(resourceBackups),
		Backups: of(f, resourceBackups, func(b *v1.DatabaseBackup) bool {
			return b.Namespace == namespace && b.Spec.SampleDB == name
		}),
		Restores: of(f, resourceRestores, func(r *v1.DatabaseRestore) bool {
			return r.Namespace == namespace && r.Spec.SampleDB == name
		}),
		Drills: of(f, resourceDrills, func(d *v1.FaultDrill) bool {
			return d.Namespace == namespace && d.Spec.SampleDB == name
		}),
		Events: of(f, resourceEvents, func(e *corev1.Event) bool {
			return e.Namespace == namespace && e.InvolvedObject.UID == uid
		}),
		Pods: of(f, resourcePods, func(p *corev1.Pod) bool {
			return p.Namespace == namespace && p.Labels[naming.LabelSampleDB] == name
		}),
	}
}

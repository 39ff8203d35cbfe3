package api

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// behind is a cache whose SampleDB stays as it was, as after an outage of the API server until the cache watches again.
type behind struct {
	client.Client
	was *v1.SampleDB
}

func (c behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if db, ok := object.(*v1.SampleDB); ok {
		c.was.DeepCopyInto(db)
		return nil
	}
	return c.Client.Get(ctx, key, object, opts...)
}

// reconcileBehind reconciles while the operator's cache has a SampleDB as it once was, and all else as it is.
func (w *world) reconcileBehind(db, was *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	cache := w.reconciler.Client
	w.reconciler.Client = behind{cache, was}
	defer func() { w.reconciler.Client = cache }()
	return w.reconcile(db)
}

// What a cache that is behind says of the status is not what it is: a SampleDB that was Ready, got worse and is
// Ready again must say so.
func TestAStatusIsWrittenThoughTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3))
	w.reconciler.Client = behind{w.reconciler.Client, db}
	const standby = "10.1.0.2"
	w.agents.change(standby, func(s *protocol.Status) { s.Streaming = false })
	now := w.reconcile(db)
	w.expect(now, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInstancesUnready)
	w.agents.change(standby, func(s *protocol.Status) { s.Streaming = true })
	now = w.reconcile(db)
	w.expect(now, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// A request that has ended is not begun again by a cache that still has the annotation which has asked for it.
func TestARestartIsOverThoughTheCacheIsBehind(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	_, err := w.command(t.Context(), servers.Restart(), "x", "--wait=false")
	w.must(err)
	was := &v1.SampleDB{}
	for tries := 0; !db.Status.Restart.Ended(); tries++ {
		if tries > 20 {
			t.Fatalf("it does not end: %+v", db.Status.Restart)
		}
		w.read("x", was)
		db = w.reconcile(db)
	}
	if was.Annotations[naming.AnnotationRestart] == "" {
		t.Fatal("the cache knows that nobody asks any more")
	}
	w.reconciler.Client = behind{w.reconciler.Client, was}
	restarts := len(w.agents.restarts)
	for range 3 {
		db = w.reconcile(db)
	}
	if len(w.agents.restarts) != restarts || !db.Status.Restart.Ended() {
		t.Errorf("restarted are %q, and it says %+v", w.agents.restarts, db.Status.Restart)
	}
}

// raced refuses the first write that takes a request away, an annotation: somebody else has written meanwhile.
type raced struct {
	client.Client
	request string
	refused *bool
}

func (c raced) Patch(ctx context.Context, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
	db, ok := object.(*v1.SampleDB)
	if ok && !*c.refused && db.Annotations[c.request] == "" {
		*c.refused = true
		return apierrors.NewConflict(schema.GroupResource{Resource: "sampledbs"}, db.Name, nil)
	}
	return c.Client.Patch(ctx, object, patch, opts...)
}

// A request that could not be taken away when it was done is taken away later, and not begun again.
func TestARestartIsOverThoughItsRequestIsTakenAwayLater(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	_, err := w.command(t.Context(), servers.Restart(), "x", "--wait=false")
	w.must(err)
	refused := false
	w.reconciler.Client = raced{w.reconciler.Client, naming.AnnotationRestart, &refused}
	for range 20 {
		db = w.reconcile(db)
	}
	if !refused || !db.Status.Restart.Ended() || db.Annotations[naming.AnnotationRestart] != "" {
		t.Fatalf("refused: %v; %+v", refused, db.Status.Restart)
	}
	if len(w.agents.restarts) != 2 {
		t.Errorf("restarted are %q", w.agents.restarts)
	}
}

package api

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
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

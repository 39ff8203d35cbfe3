package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"toban.dev/internal/agent/publish"
	"toban.dev/internal/httppath"
	"toban.dev/internal/protocol"
)

// reachable is an instance's Kubernetes, with how often its API was called.
func reachable(t *testing.T) (*Cluster, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"db-0","labels":` +
			`{"toban.dev/role":"primary"}}}`))
	}))
	t.Cleanup(server.Close)
	k, err := New(&rest.Config{Host: server.URL}, "test", "db-0", "db")
	if err != nil {
		t.Fatal(err)
	}
	return k, &calls
}

func TestNothingReachesAnAPIThatIsCut(t *testing.T) {
	k, calls := reachable(t)
	look := func() (protocol.Role, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return k.Published(ctx)
	}
	k.Cut()
	k.Cut() // a second time changes nothing
	if _, err := look(); !errors.Is(err, httppath.ErrCut) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read fails by %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wish := publish.Wish{Role: protocol.RolePrimary, Term: 1}
	if err := k.Publish(ctx, wish, []string{"db-1"}); !errors.Is(err, httppath.ErrCut) {
		t.Errorf("a write fails by %v", err)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls have reached the API", n)
	}
	k.Restore()
	k.Restore()
	role, err := k.Published(t.Context())
	if err != nil || role != protocol.RolePrimary {
		t.Errorf("afterwards it reads %q, %v", role, err)
	}
}

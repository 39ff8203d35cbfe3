package api

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	httpsagents "toban.dev/internal/operator/agents"
	"toban.dev/internal/operator/cached"
	"toban.dev/internal/operator/sampledb"
	"toban.dev/internal/protocol"
)

// lostNode has the agents of a node that is lost: whoever connects to them gets no answer. The others are the test's.
type lostNode struct {
	*agents
	client *httpsagents.HTTPS
	// asked are the SampleDBs of which an agent was asked, waited is what that has cost the workers.
	asked  sync.Map
	waited atomic.Int64
}

// lost says that an address is on the node.
func lost(host string) bool { return strings.HasPrefix(host, "10.77.") }

func (n *lostNode) Sync(
	ctx context.Context, cluster types.UID, host string, config protocol.Config,
) (protocol.Status, error) {
	if !lost(host) {
		return n.agents.Sync(ctx, cluster, host, config)
	}
	start := time.Now()
	defer func() { n.waited.Add(int64(time.Since(start))) }()
	n.asked.Store(cluster, true)
	return n.client.Sync(ctx, cluster, host, config)
}

func (n *lostNode) Changed() <-chan ctrlevent.GenericEvent { return n.client.Changed() }

// loseNode starts what listens there: it accepts and never answers.
func (w *world) loseNode() *lostNode {
	w.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.Cleanup(func() { w.must(listener.Close()) })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			w.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return &lostNode{agents: w.agents, client: &httpsagents.HTTPS{
		Certificate: w.reconciler.Credentials.Certificate,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		},
	}}
}

// runController runs the controller of SampleDBs in the namespace, as the operator does, until the test ends.
func (w *world) runController() {
	w.Helper()
	kept := sampledb.CacheOptions()
	kept.DefaultNamespaces = map[string]cache.Config{w.namespace: {}}
	twice := true
	manager, err := ctrl.NewManager(w.server, ctrl.Options{
		Scheme: scheme, Cache: kept, NewClient: cached.NewClient, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &twice},
	})
	w.must(err)
	w.reconciler.Client, w.reconciler.Reader, w.reconciler.Now = manager.GetClient(), manager.GetAPIReader(), time.Now
	w.must(w.reconciler.Setup(manager))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the controller ended: %v", err)
		}
	})
}

// A node is lost with the instances of more databases than the operator has workers. Their agents cost the workers a
// moment each, once, and not for as long as they are silent: other databases go on to be looked after.
func TestSilentAgentsLeaveTheOperatorItsWorkers(t *testing.T) {
	const silent, edits, window = 50, 5, 10 * time.Second
	w := newWorld(t)
	node := w.loseNode()
	w.reconciler.Agents = node
	w.runController()
	for i := range silent {
		w.must(w.api.Create(t.Context(), w.sampleDB(fmt.Sprintf("lost-%02d", i))))
	}
	w.must(w.api.Create(t.Context(), w.sampleDB("well")))
	for i := range silent {
		name, set := fmt.Sprintf("lost-%02d", i), &appsv1.StatefulSet{}
		w.until("there is no StatefulSet "+name, func() bool { return w.find(naming.StatefulSet(name), set) })
		w.makePod(set, 0, fmt.Sprintf("10.77.0.%d", i+1))
	}
	w.until("not every silent agent was asked", func() bool {
		count := 0
		node.asked.Range(func(any, any) bool { count++; return true })
		return count == silent
	})
	edited := 0
	for end := time.Now().Add(window); edited < edits || time.Now().Before(end); edited++ {
		w.editWell(edited)
	}
	t.Logf("%d edits; workers have waited for silent agents for %v", edited, time.Duration(node.waited.Load()))
	if waited, most := time.Duration(node.waited.Load()), silent*time.Second; waited > most {
		t.Errorf("workers have waited for silent agents for %v in all, want no more than %v", waited, most)
	}
	db := &v1.SampleDB{}
	w.read("lost-00", db)
	w.expect(db, v1.ConditionAvailable, "Unknown", v1.ReasonUnknown)
}

// editWell changes the spec of the database that is well, and waits until the operator has acted on it.
func (w *world) editWell(n int) {
	w.Helper()
	db := &v1.SampleDB{}
	w.read("well", db)
	was := db.DeepCopy()
	db.Spec.Pod.Labels = map[string]string{"edit": fmt.Sprint(n)}
	w.must(w.api.Patch(w.Context(), db, client.MergeFrom(was)))
	w.until(fmt.Sprintf("edit %d is not acted on", n), func() bool {
		set := &appsv1.StatefulSet{}
		return w.find("well", set) && set.Spec.Template.Labels["edit"] == fmt.Sprint(n)
	})
}

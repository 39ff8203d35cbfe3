package api

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Of two operators one works, and the other waits. When the one that works is lost with its node, the other takes over
// as soon as the lease has run out. It does what is to do, and nothing again that is done.
func TestOfTwoOperatorsOneWorks(t *testing.T) {
	w := newWorld(t)
	home := w.anotherNamespace()
	const lease = "--lease-duration=20s"
	first := w.installed(home, w.namespace, lease)
	w.until("the first operator does not hold the lease", func() bool { return w.leads(home) != "" })
	second := w.runOperator(home, "WATCH_NAMESPACE="+w.namespace, lease)
	w.until("the second operator does not ask who holds the lease", func() bool {
		return len(second.requests(func(request string) bool {
			return request == "GET /apis/coordination.k8s.io/v1/namespaces/"+home+"/leases/"+naming.OperatorLease(0)
		})) > 0
	})

	x, y := w.sampleDB("x"), w.sampleDB("y")
	w.must(w.api.Create(t.Context(), x))
	w.made(x)
	before, leader := w.versions(x), w.leads(home)
	if wrote := second.requests(isWrite); len(wrote) > 0 {
		t.Fatalf("the second operator has written while the first held the lease: %q", wrote)
	}

	first.kill()
	w.runOut(home, 0)
	w.must(w.api.Create(t.Context(), y))
	w.made(y)
	if now := w.leads(home); now == leader || now == "" {
		t.Errorf("the lease is held by %q, and before the first was lost by %q", now, leader)
	}
	if after := w.versions(x); !maps.Equal(before, after) {
		t.Errorf("what the first has made was written again:\n%v\nis now\n%v", before, after)
	}
	w.toldOnce(x)
	w.toldOnce(y)
}

// isWrite says of a request whether it changes anything. To ask what one may do changes nothing.
func isWrite(request string) bool {
	return !strings.HasPrefix(request, "GET ") && !strings.HasSuffix(request, "/selfsubjectaccessreviews")
}

// leads is who holds the lease of the operators of a namespace; "" is nobody.
func (w *world) leads(home string) string { return w.leadsShard(home, 0) }

func (w *world) leadsShard(home string, shard int) string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	if !w.has(home, naming.OperatorLease(shard), lease) || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// runOut makes the lease of a shard one that runs out now, so that no test waits for that.
func (w *world) runOut(home string, shard int) {
	w.Helper()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = home, naming.OperatorLease(shard)
	w.must(w.api.Patch(w.Context(), lease, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"leaseDurationSeconds":1}}`))))
}

// versions are those of all objects that a SampleDB has, by kind and name.
func (w *world) versions(db *v1.SampleDB) map[string]string {
	w.Helper()
	versions := map[string]string{}
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Version: "v1", Kind: "Service"},
		{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	} {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(kind)
		w.must(w.api.List(w.Context(), all, client.InNamespace(db.Namespace),
			client.MatchingLabels{naming.LabelSampleDB: db.Name}))
		for _, object := range all.Items {
			versions[fmt.Sprintf("%s %s", kind.Kind, object.GetName())] = object.GetResourceVersion()
		}
	}
	if len(versions) == 0 {
		w.Fatalf("the SampleDB %s has nothing", db.Name)
	}
	return versions
}

// toldOnce checks that no event about a SampleDB was told by two operators.
func (w *world) toldOnce(db *v1.SampleDB) {
	w.Helper()
	var all eventsv1.EventList
	w.must(w.api.List(w.Context(), &all, client.InNamespace(db.Namespace)))
	told := map[string]int{}
	for _, e := range all.Items {
		if e.Regarding.Name == db.Name {
			told[e.Reason+": "+e.Note]++
		}
	}
	for event, times := range told {
		if times > 1 {
			w.Errorf("%d times: %s", times, event)
		}
	}
}

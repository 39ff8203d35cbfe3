package api

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestBadMetricsAreRefusedWithTheirSentence(t *testing.T) {
	w := newWorld(t)
	query := func(name string, labels ...string) v1.MetricsSpec {
		return v1.MetricsSpec{Queries: []v1.MetricsQuery{{Name: name, SQL: "select 1 as n", Labels: labels}}}
	}
	off := query("orders")
	off.None = true
	for name, c := range map[string]struct {
		metrics v1.MetricsSpec
		want    string
	}{
		"queries although there are none": {off, "metrics.none turns the metrics off"},
		"a name with capitals":            {query("Orders"), "becomes part of the names of metrics"},
		"a label that Prometheus keeps":   {query("orders", "__name__"), "a label must have only lower-case letters"},
		"a reader that is nobody":         {v1.MetricsSpec{From: []v1.NetworkPeer{{}}}, "each item of from must have"},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("bad", func(db *v1.SampleDB) { db.Spec.Metrics = &c.metrics })
			refused(t, w.api.Create(t.Context(), db), c.want)
		})
	}
}

// By default the namespaces with the label read the metrics, and with spec.metrics.from who is named there.
func TestWhoReadsTheMetrics(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	readers := func() []networkingv1.NetworkPolicyPeer {
		policy := &networkingv1.NetworkPolicy{}
		w.read("x", policy)
		for _, rule := range policy.Spec.Ingress {
			if len(rule.Ports) == 1 && rule.Ports[0].Port.IntVal == naming.PortMetrics {
				return rule.From
			}
		}
		return nil
	}
	if r := readers(); len(r) != 1 || r[0].NamespaceSelector.MatchLabels[naming.LabelMetrics] != naming.ReadsMetrics {
		t.Errorf("by default %v read the metrics", r)
	}
	db = w.reconcile(w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Metrics = &v1.MetricsSpec{From: []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}}
	}))
	if r := readers(); len(r) != 1 || r[0].PodSelector == nil || r[0].NamespaceSelector != nil {
		t.Errorf("with spec.metrics.from %v read the metrics", r)
	}
	w.reconcile(w.edit(db, func(db *v1.SampleDB) { db.Spec.Metrics = &v1.MetricsSpec{None: true} }))
	if r := readers(); r != nil {
		t.Errorf("although they are turned off %v read the metrics", r)
	}
}

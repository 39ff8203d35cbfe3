package desired

import (
	"cmp"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// metrics is what the agents are to serve besides the default, nil for nothing.
func metrics(db *v1.SampleDB) *protocol.Metrics {
	spec := db.Spec.Metrics
	switch {
	case spec == nil, !spec.None && len(spec.Queries) == 0:
		return nil
	case spec.None:
		return &protocol.Metrics{None: true}
	}
	out := &protocol.Metrics{AllData: spec.QueriesRead == v1.QueriesReadAllData}
	for _, q := range spec.Queries {
		out.Queries = append(out.Queries, protocol.MetricsQuery{
			Name: q.Name, SQL: q.SQL, Labels: q.Labels, Database: cmp.Or(q.Database, initSpec(db).Database),
		})
	}
	return out
}

// metricsRules say who reads the metrics. They tell more than the probes, so not everybody does.
func metricsRules(db *v1.SampleDB) []networkingv1.NetworkPolicyIngressRule {
	spec := v1.MetricsSpec{}
	if db.Spec.Metrics != nil {
		spec = *db.Spec.Metrics
	}
	if spec.None {
		return nil
	}
	readers := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{naming.LabelMetrics: naming.ReadsMetrics},
	}}}
	if len(spec.From) > 0 {
		readers = nil
	}
	for _, p := range spec.From {
		readers = append(readers, peer(p))
	}
	return []networkingv1.NetworkPolicyIngressRule{
		{Ports: []networkingv1.NetworkPolicyPort{port(naming.PortMetrics)}, From: readers},
	}
}

package desired

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Leads is whom Services lead to, as far as the SampleDB does not say it.
type Leads struct {
	// PassedOn says that NAME leads to all instances, which pass clients on.
	PassedOn bool
	// Green is the second side of a blue/green upgrade, nil where it is not known: it may have readers that are ready.
	Green *v1.SampleDB
}

// Services are NAME (the primary), NAME-ro (standbys) and NAME-instances (each by its name).
// Where clients are passed on, NAME leads to all instances that do so. While the second side of a blue/green upgrade
// serves, NAME and NAME-ro lead there.
func Services(db *v1.SampleDB, leads Leads) []*corev1.Service {
	return []*corev1.Service{
		readWriteService(db, leads.PassedOn), readOnlyService(db, leads.Green), headlessService(db),
	}
}

func readWriteService(db *v1.SampleDB, passedOn bool) *corev1.Service {
	s := service(db, naming.ReadWriteService(db.Name), naming.RoleSelector(serving(db), string(protocol.RolePrimary)))
	if passedOn && serving(db) == db.Name {
		s.Spec.Selector = naming.InstanceSelector(db.Name)
		s.Spec.Selector[naming.LabelRelay] = naming.Relays
		// No port of the Pods is declared: one more would replace Pods that are older than the relay.
		s.Spec.Ports[0].TargetPort = intstr.FromInt32(naming.PortRelay)
	}
	s.Annotations = merged(db.Spec.Service.Annotations)
	// The label is the gate: an instance bears it as soon as it takes writes. The
	// kubelet's probe would only tell the same up to a second later.
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Type = db.Spec.Service.Type
	if s.Spec.Type == "" {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	return s
}

// serving is the SampleDB whose instances clients are led to.
func serving(db *v1.SampleDB) string {
	if db.Status.Upgrade.GreenServes() {
		return naming.Green(db.Name)
	}
	return db.Name
}

func readOnlyService(db, green *v1.SampleDB) *corev1.Service {
	s := service(db, naming.ReadOnlyService(db.Name), readOnly(db, green))
	s.Spec.Type = corev1.ServiceTypeClusterIP
	if db.Spec.Service.ReadNearest {
		near := corev1.ServiceTrafficDistributionPreferClose
		s.Spec.TrafficDistribution = &near
	}
	return s
}

// headlessService gives instances their names, also before they are ready: they
// need each other to become it.
func headlessService(db *v1.SampleDB) *corev1.Service {
	s := service(db, naming.HeadlessService(db.Name), naming.InstanceSelector(db.Name))
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
		Name: "agent", Protocol: corev1.ProtocolTCP, Port: naming.PortAgent, TargetPort: intstr.FromString("agent"),
	})
	return s
}

func service(db *v1.SampleDB, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: meta(db, name),
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Ports: []corev1.ServicePort{{
				Name: "postgresql", Protocol: corev1.ProtocolTCP,
				Port: naming.PortPostgreSQL, TargetPort: intstr.FromString("postgresql"),
			}},
		},
	}
}

// Budget lets one instance at a time be evicted. A single one is not, so that a
// drain is refused and is not an outage that nobody meant; where spec.eviction
// allows it, there is no budget (nil).
func Budget(db *v1.SampleDB) *policyv1.PodDisruptionBudget {
	most := int32(1)
	if Instances(db) == 1 {
		if db.Spec.Eviction == v1.EvictionAllow {
			return nil
		}
		most = 0
	}
	return budget(db, naming.Budget(db.Name), naming.InstanceSelector(db.Name), most)
}

// budget lets so many Pods at a time be evicted. One that is not ready protects nobody; a drain may always take it.
func budget(db *v1.SampleDB, name string, selector map[string]string, most int32) *policyv1.PodDisruptionBudget {
	unavailable, always := intstr.FromInt32(most), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(db, name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &unavailable,
			Selector:                   &metav1.LabelSelector{MatchLabels: selector},
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// NetworkPolicy lets clients reach PostgreSQL, all or those of spec.network.from, only the other instances and the
// operator reach an agent, and only who reads metrics reaches those. What a MyApp's Pods need has a policy of its own:
// policies only ever allow. Egress is not restricted.
func NetworkPolicy(db *v1.SampleDB, settings Settings) *networkingv1.NetworkPolicy {
	servers := servers(db)
	agents := []networkingv1.NetworkPolicyPeer{{PodSelector: &servers}}
	if db.Spec.Pooler != nil {
		poolers := podsOf(db, poolComponents(db)...)
		agents = append(agents, networkingv1.NetworkPolicyPeer{PodSelector: &poolers})
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: meta(db, naming.NetworkPolicy(db.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: servers,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: append(append(clientRules(db), networkingv1.NetworkPolicyIngressRule{
				Ports: []networkingv1.NetworkPolicyPort{port(naming.PortAgent)},
				From:  append(agents, networkingv1.NetworkPolicyPeer{NamespaceSelector: operatorNamespace(settings)}),
			}), metricsRules(db)...),
		},
	}
}

// operatorNamespace selects where the operator is.
func operatorNamespace(settings Settings) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: settings.Namespace}}
}

// clientRules say who reaches PostgreSQL. Everybody reaches the probes, which say only how the instance is: a kubelet
// that can't ask would restart it.
func clientRules(db *v1.SampleDB) []networkingv1.NetworkPolicyIngressRule {
	from := db.Spec.Network.From
	clients := []networkingv1.NetworkPolicyPort{port(naming.PortPostgreSQL)}
	if db.Spec.Service.Route == v1.RouteRelay {
		clients = append(clients, port(naming.PortRelay))
	}
	if len(from) == 0 {
		return []networkingv1.NetworkPolicyIngressRule{{Ports: append(clients, port(naming.PortProbe))}}
	}
	// Those of our own Pods that connect: standbys, readers, the init Job, backups, the check before an upgrade, the
	// Job after a change of the image, what brings tables back, and the clients of a drill.
	connect := []string{naming.ComponentInstance, naming.ComponentInit, naming.ComponentBackup,
		naming.ComponentUpgrade, naming.ComponentFinish, naming.ComponentBring, naming.ComponentDrill}
	if MostReaders(db) > 0 {
		connect = append(connect, naming.ComponentReader)
	}
	connect = append(connect, poolComponents(db)...)
	own := podsOf(db, connect...)
	peers := append([]networkingv1.NetworkPolicyPeer{{PodSelector: &own}}, otherSidePeers(db)...)
	for _, p := range from {
		peers = append(peers, peer(p))
	}
	return []networkingv1.NetworkPolicyIngressRule{
		{Ports: clients, From: peers},
		{Ports: []networkingv1.NetworkPolicyPort{port(naming.PortProbe)}},
	}
}

// otherSidePeers are the instances of the other side of a blue/green upgrade, which may follow, and the Pods that do
// the work of both.
func otherSidePeers(db *v1.SampleDB) []networkingv1.NetworkPolicyPeer {
	other, first := otherSide(db)
	if other == "" {
		return nil
	}
	instances, work := podsNamed(other, naming.ComponentInstance), podsNamed(first, naming.ComponentSides)
	return []networkingv1.NetworkPolicyPeer{{PodSelector: &instances}, {PodSelector: &work}}
}

// podsOf selects Pods of a SampleDB by what they are for.
func podsOf(db *v1.SampleDB, components ...string) metav1.LabelSelector {
	return podsNamed(db.Name, components...)
}

func podsNamed(db string, components ...string) metav1.LabelSelector {
	return metav1.LabelSelector{
		MatchLabels: map[string]string{naming.LabelSampleDB: db},
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: naming.LabelComponent, Operator: metav1.LabelSelectorOpIn, Values: components,
		}},
	}
}

func peer(p v1.NetworkPeer) networkingv1.NetworkPolicyPeer {
	out := networkingv1.NetworkPolicyPeer{PodSelector: p.PodSelector, NamespaceSelector: p.NamespaceSelector}
	if p.IPBlock == nil {
		return out
	}
	out.IPBlock = &networkingv1.IPBlock{CIDR: string(p.IPBlock.CIDR)}
	for _, e := range p.IPBlock.Except {
		out.IPBlock.Except = append(out.IPBlock.Except, string(e))
	}
	return out
}

func port(number int32) networkingv1.NetworkPolicyPort {
	tcp, p := corev1.ProtocolTCP, intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &tcp, Port: &p}
}

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

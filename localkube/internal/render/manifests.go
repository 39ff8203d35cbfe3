package render

import "toban.dev/localkube/internal/plan"

// An Object is something the API server is to have: where, and what.
type Object struct{ Path, YAML string }

// Objects are what the cluster itself needs in the API: the DNS server's rights,
// and the Service by which Pods reach it. The server runs on the host, so the
// Service selects no Pods and its EndpointSlice is written here. And the kubelets'
// rights: the API server learns a moment late which Pod is on which node, and a
// kubelet that is refused a volume's claim meanwhile tries again only a quarter of
// a minute later.
func Objects() []Object {
	v := values{"DNS": plan.DNSService, "HostIP": plan.HostIP}
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	return []Object{
		{rbac + "clusterroles/system:coredns", execute("coredns-role.yaml", v)},
		{rbac + "clusterrolebindings/system:coredns", execute("coredns-binding.yaml", v)},
		{rbac + "clusterrolebindings/localkube:nodes", execute("nodes-binding.yaml", v)},
		{"/api/v1/namespaces/kube-system/services/kube-dns", execute("dns-service.yaml", v)},
		{
			"/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns-host",
			execute("dns-endpoints.yaml", v),
		},
	}
}

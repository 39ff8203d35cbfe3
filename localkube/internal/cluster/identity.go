package cluster

import (
	"fmt"

	"toban.dev/localkube/internal/kubeconfig"
	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
)

// identities makes all certificates and the kubeconfigs of the cluster's own parts.
func (c *Cluster) identities() error {
	for _, authority := range []string{"ca", "etcd-ca", "front-proxy-ca"} {
		if err := c.store.Authority(authority); err != nil {
			return err
		}
	}
	if err := c.store.KeyPair("service-account"); err != nil {
		return err
	}
	for _, pair := range c.pairs() {
		if err := c.store.Issue(pair.authority, pair.name, pair.subject); err != nil {
			return err
		}
		if !pair.kubeconfig {
			continue
		}
		text, err := c.store.Kubeconfig("ca", pair.name, Server)
		if err != nil {
			return err
		}
		if err := kubeconfig.Write(plan.Kubeconfig(pair.name), Server, text); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", pair.name, err)
		}
	}
	return nil
}

type pair struct {
	authority, name string
	kubeconfig      bool
	subject         pki.Subject
}

// pairs lists who there is. What a user may do follows from its name and group
// by Kubernetes' own rules; those of coredns are in package render.
func (c *Cluster) pairs() []pair {
	const masters = "system:masters"
	pairs := []pair{
		{"etcd-ca", "etcd", false, pki.Subject{Name: "etcd", Hosts: []string{"127.0.0.1", "localhost"}}},
		{"etcd-ca", "etcd-client", false, pki.Subject{Name: "kube-apiserver"}},
		{"front-proxy-ca", "front-proxy-client", false, pki.Subject{Name: "front-proxy-client"}},
		{"ca", "kube-apiserver", false, pki.Subject{Name: "kube-apiserver", Hosts: []string{
			plan.HostIP, plan.APIService, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc." + plan.Domain,
		}}},
		{"ca", "kubelet-client", false, pki.Subject{Name: "kube-apiserver-kubelet-client", Group: masters}},
		{"ca", "admin", true, pki.Subject{Name: "localkube-admin", Group: masters}},
		{"ca", "kube-controller-manager", true, pki.Subject{Name: "system:kube-controller-manager"}},
		{"ca", "kube-scheduler", true, pki.Subject{Name: "system:kube-scheduler"}},
		{"ca", "kube-proxy", true, pki.Subject{Name: "system:kube-proxy"}},
		{"ca", "coredns", true, pki.Subject{Name: "system:coredns"}},
		{"ca", "provisioner", true, pki.Subject{Name: "localkube:provisioner", Group: masters}},
	}
	for _, n := range c.nodes {
		pairs = append(pairs, pair{"ca", n.Kubelet(), true, pki.Subject{
			Name: "system:node:" + n.Name, Group: "system:nodes", Hosts: []string{n.IP, n.Name},
		}})
	}
	return pairs
}

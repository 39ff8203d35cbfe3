package render

import (
	"path/filepath"

	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
)

// Where etcd listens. Only this machine reaches it, and only with a certificate.
const (
	etcdClients = "https://127.0.0.1:12379"
	etcdPeers   = "http://127.0.0.1:12380"
)

// zoneLabel is the label by which Kubernetes knows the zone of a node.
const zoneLabel = "topology.kubernetes.io/zone"

// EtcdCommand is etcd's command line. Without fsync it is a lot faster and
// survives its own crash, but not the machine's.
func EtcdCommand(p Programs, store pki.Store, fsync bool) []string {
	args := []string{
		filepath.Join(p.Kubernetes, "etcd"),
		"--name=localkube",
		"--data-dir=" + plan.Etcd,
		"--listen-client-urls=" + etcdClients,
		"--advertise-client-urls=" + etcdClients,
		"--listen-peer-urls=" + etcdPeers,
		"--initial-advertise-peer-urls=" + etcdPeers,
		"--initial-cluster=localkube=" + etcdPeers,
		"--client-cert-auth",
		"--trusted-ca-file=" + store.Cert("etcd-ca"),
		"--cert-file=" + store.Cert("etcd"),
		"--key-file=" + store.Key("etcd"),
		"--auto-compaction-retention=1h",
		"--log-level=warn",
	}
	if !fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return args
}

// APIServerCommand is kube-apiserver's command line.
func APIServerCommand(p Programs, store pki.Store) []string {
	return []string{
		filepath.Join(p.Kubernetes, "kube-apiserver"),
		"--bind-address=" + plan.HostIP,
		"--advertise-address=" + plan.HostIP,
		"--service-cluster-ip-range=" + plan.ServiceCIDR,
		"--tls-cert-file=" + store.Cert("kube-apiserver"),
		"--tls-private-key-file=" + store.Key("kube-apiserver"),
		"--client-ca-file=" + store.Cert("ca"),
		"--etcd-servers=" + etcdClients,
		"--etcd-cafile=" + store.Cert("etcd-ca"),
		"--etcd-certfile=" + store.Cert("etcd-client"),
		"--etcd-keyfile=" + store.Key("etcd-client"),
		"--kubelet-certificate-authority=" + store.Cert("ca"),
		"--kubelet-client-certificate=" + store.Cert("kubelet-client"),
		"--kubelet-client-key=" + store.Key("kubelet-client"),
		// Node names are in no DNS.
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc." + plan.Domain,
		"--service-account-key-file=" + store.Cert("service-account"),
		"--service-account-signing-key-file=" + store.Key("service-account"),
		"--requestheader-client-ca-file=" + store.Cert("front-proxy-ca"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + store.Cert("front-proxy-client"),
		"--proxy-client-key-file=" + store.Key("front-proxy-client"),
		"--enable-aggregator-routing=true",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file=" + filepath.Join(plan.Configs, "audit-policy.yaml"),
		"--audit-log-path=" + plan.AuditLog,
		"--audit-log-maxsize=100",
		"--audit-log-maxbackup=3",
		"--profiling=false",
	}
}

// ControllerManagerCommand is kube-controller-manager's command line. How it
// judges nodes is left as it is by default: failures are measured against that.
func ControllerManagerCommand(p Programs, store pki.Store) []string {
	return append(withKubeconfig(p, "kube-controller-manager"),
		"--cluster-name=localkube",
		"--cluster-signing-cert-file="+store.Cert("ca"),
		"--cluster-signing-key-file="+store.Key("ca"),
		"--root-ca-file="+store.Cert("ca"),
		"--service-account-private-key-file="+store.Key("service-account"),
		"--use-service-account-credentials=true",
		"--flex-volume-plugin-dir="+filepath.Join(plan.State, "volume-plugins"),
	)
}

// SchedulerCommand is kube-scheduler's command line.
func SchedulerCommand(p Programs) []string { return withKubeconfig(p, "kube-scheduler") }

// withKubeconfig is what the two that act through the API have in common. There
// is one of each, so neither has to be elected, which costs writes for ever.
func withKubeconfig(p Programs, name string) []string {
	kubeconfig := plan.Kubeconfig(name)
	return []string{
		filepath.Join(p.Kubernetes, name),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--requestheader-client-ca-file=" + filepath.Join(plan.PKI, "front-proxy-ca.crt"),
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--profiling=false",
	}
}

// CoreDNSCommand is CoreDNS's command line.
func CoreDNSCommand(p Programs) []string {
	return []string{filepath.Join(p.CoreDNS, "coredns"), "-conf", filepath.Join(plan.Configs, "Corefile")}
}

// ProvisionerCommand is the command line of the provisioner of volumes, which
// is part of this program.
func ProvisionerCommand(self string) []string {
	return []string{self, "provisioner", "--kubeconfig", plan.Kubeconfig("provisioner"), "--root", plan.Volumes}
}

// ContainerdCommand is the command line of a node's container runtime.
func ContainerdCommand(p Programs, n plan.Node) []string {
	return []string{filepath.Join(p.Containerd, "containerd"), "--config", n.Path("config", "containerd.toml")}
}

// KubeletCommand is the command line of a node's kubelet.
func KubeletCommand(p Programs, n plan.Node) []string {
	return []string{
		filepath.Join(p.Kubernetes, "kubelet"),
		"--config=" + n.Path("config", "kubelet.yaml"),
		"--kubeconfig=" + plan.Kubeconfig(n.Kubelet()),
		"--root-dir=" + n.Path("kubelet"),
		"--cert-dir=" + n.Path("kubelet", "pki"),
		"--hostname-override=" + n.Name,
		"--node-labels=" + zoneLabel + "=" + n.Zone(),
		"--node-ip=" + n.IP,
		"--runtime-cgroups=" + n.SystemCgroup(),
	}
}

// KubeProxyCommand is the command line of a node's kube-proxy.
func KubeProxyCommand(p Programs, n plan.Node) []string {
	return []string{filepath.Join(p.Kubernetes, "kube-proxy"), "--config=" + n.Path("config", "kube-proxy.yaml")}
}

package plan

import (
	"fmt"
	"path/filepath"
)

// Where the cluster lies on disk. There is one per machine, so these are fixed.
const (
	State = "/var/lib/localkube" // lives as long as the cluster
	Run   = "/run/localkube"     // sockets and records; short, as a socket's path must be
)

// Files and directories of the whole cluster.
const (
	ConfigFile  = State + "/cluster.json"
	FaultsFile  = State + "/faults.json"
	SysctlFile  = State + "/sysctl.json"
	PKI         = State + "/pki"
	Kubeconfigs = State + "/kubeconfigs"
	Etcd        = State + "/etcd"
	Configs     = State + "/config"
	Logs        = State + "/log"
	AuditLog    = State + "/log/audit.log"
	Volumes     = State + "/volumes"
	Records     = Run + "/processes"
	CNIPlugins  = "/usr/lib/cni" // Debian's containernetworking-plugins
)

// LockFile is held by the command that changes the cluster. It is beside Run,
// not in it, because `down` removes Run while it holds it.
const LockFile = "/run/localkube.lock"

// Kubeconfig is the file with which a user of the API reaches it.
func Kubeconfig(user string) string { return filepath.Join(Kubeconfigs, user) }

// Log is the log of a process.
func Log(process string) string { return filepath.Join(Logs, process+".log") }

// Dir is where the node's files lie: what would be on its disk.
func (n Node) Dir() string { return filepath.Join(State, "nodes", n.Name) }

// Run is where the node's sockets and mounts are: what a reboot would empty.
func (n Node) Run() string { return filepath.Join(Run, n.Name) }

// Socket is that of the node's containerd.
func (n Node) Socket() string { return filepath.Join(n.Run(), "containerd.sock") }

// Path returns the path of a file or directory of the node.
func (n Node) Path(elements ...string) string {
	return filepath.Join(append([]string{n.Dir()}, elements...)...)
}

// Zone is the zone that the node is in, one for each node: zone-a, zone-b and so on.
func (n Node) Zone() string { return fmt.Sprintf("zone-%c", 'a'+n.Index) }

// Containerd is the name of the node's containerd among all processes.
func (n Node) Containerd() string { return n.Name + "-containerd" }

// Kubelet is the name of the node's kubelet.
func (n Node) Kubelet() string { return n.Name + "-kubelet" }

// KubeProxy is the name of the node's kube-proxy.
func (n Node) KubeProxy() string { return n.Name + "-kube-proxy" }

// Cgroup is the node's cgroup as the kubelet and the container runtime name it.
// Pods and the node's own processes are below it.
func (n Node) Cgroup() string { return CgroupRoot + "/" + n.Name }

// Cgroups, from the root of every hierarchy.
const (
	CgroupRoot    = "/localkube"
	CgroupControl = CgroupRoot + "/control" // the control plane's processes
)

// SystemCgroup is that of the node's own processes: containerd, kubelet, kube-proxy.
func (n Node) SystemCgroup() string { return n.Cgroup() + "/system" }

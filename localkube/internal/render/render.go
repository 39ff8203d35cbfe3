// Package render writes the configuration of every component: files from
// templates, and command lines. It is pure: what it returns depends on its
// arguments alone, and testdata/ holds what it returns for a sample.
package render

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
)

//go:embed templates
var templates embed.FS

var parsed = template.Must(template.New("").Option("missingkey=error").ParseFS(templates, "templates/*"))

// PauseImage is the name of the image that holds a Pod's namespaces.
const PauseImage = "localhost/pause:1"

// Programs are the directories with the components' programs.
type Programs struct {
	Kubernetes string `json:"kubernetes"`
	Containerd string `json:"containerd"`
	Runc       string `json:"runc"`
	CoreDNS    string `json:"coredns"`
}

// A File is a path and what belongs there.
type File struct{ Path, Text string }

type values map[string]any

func execute(name string, v values) string {
	var b strings.Builder
	if err := parsed.ExecuteTemplate(&b, name, v); err != nil {
		panic(err) // a template and its values are both in this package
	}
	return b.String()
}

// ControlPlane returns the configuration files of the control plane.
func ControlPlane(nodes []plan.Node) []File {
	hosts := filepath.Join(plan.Configs, "hosts")
	var names strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&names, "%s %s\n", n.IP, n.Name)
	}
	return []File{
		{hosts, names.String()},
		{filepath.Join(plan.Configs, "audit-policy.yaml"), execute("audit-policy.yaml", nil)},
		{filepath.Join(plan.Configs, "Corefile"), execute("Corefile", values{
			"HostIP": plan.HostIP, "Domain": plan.Domain, "Hosts": hosts, "Kubeconfig": plan.Kubeconfig("coredns"),
		})},
	}
}

// Node returns the configuration files of a node. restrictOOM is for machines
// on which a process may not lower its out-of-memory score.
func Node(n plan.Node, programs Programs, store pki.Store, restrictOOM bool) []File {
	return []File{
		{n.Path("config", "kubelet.yaml"), execute("kubelet.yaml", values{
			"IP": n.IP, "Cert": store.Cert(n.Kubelet()), "Key": store.Key(n.Kubelet()), "CA": store.Cert("ca"),
			"DNS": plan.DNSService, "Domain": plan.Domain, "Socket": n.Socket(), "Cgroup": n.Cgroup(),
			"PodLogs": n.Path("pod-logs"), "Plugins": n.Path("volume-plugins"),
		})},
		{n.Path("config", "kube-proxy.yaml"), execute("kube-proxy.yaml", values{
			"Kubeconfig": plan.Kubeconfig("kube-proxy"), "Name": n.Name, "IP": n.IP, "PodCIDR": plan.PodCIDR,
		})},
		{n.Path("config", "containerd.toml"), execute("containerd.toml", values{
			"Root": n.Path("containerd"), "State": filepath.Join(n.Run(), "containerd"), "Socket": n.Socket(),
			"Shims": filepath.Join(n.Run(), "s"), "Pause": PauseImage, "RestrictOOM": restrictOOM,
			"CNIPlugins": plan.CNIPlugins, "CNIConfig": n.Path("config", "cni"),
			"Runc": filepath.Join(programs.Runc, "runc"), "RuncRoot": filepath.Join(n.Run(), "runc"),
		})},
		{n.Path("config", "cni", "10-localkube.conflist"), execute("cni.conflist", values{
			"Leases": n.Path("cni"), "PodCIDR": n.PodCIDR,
		})},
	}
}

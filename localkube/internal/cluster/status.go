package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"toban.dev/localkube/internal/kube"
	"toban.dev/localkube/internal/machine"
	"toban.dev/localkube/internal/network"
	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/proc"
)

// A Status is how the cluster is.
type Status struct {
	Cluster    string          `json:"cluster"` // "up", "partial" or "down"
	Server     string          `json:"server,omitempty"`
	Kubeconfig string          `json:"kubeconfig,omitempty"`
	AuditLog   string          `json:"auditLog,omitempty"`
	Logs       string          `json:"logs,omitempty"`
	Nodes      []NodeStatus    `json:"nodes"`
	Processes  []ProcessStatus `json:"processes"`
	Faults     []Fault         `json:"faults"`
}

// A NodeStatus is how one node is. Whether it is Ready is the API server's word;
// without that it is unknown.
type NodeStatus struct {
	plan.Node
	Ready string `json:"ready"` // "true", "false" or "unknown"
	Link  string `json:"link"`  // "up" or "down"
}

// A ProcessStatus is how one process is.
type ProcessStatus struct {
	Name  string `json:"name"`
	PID   int    `json:"pid,omitempty"`
	State string `json:"state"` // "running", "frozen", "stopped" on purpose, or "ended"
	Log   string `json:"log"`
}

// Look returns the cluster's status. It changes nothing and waits for nobody.
func Look(ctx context.Context) (Status, error) {
	if err := machine.Check(); err != nil {
		return Status{}, err
	}
	config, err := readConfig()
	if errors.Is(err, errNone) {
		return Status{Cluster: "down", Nodes: []NodeStatus{}, Processes: []ProcessStatus{}, Faults: []Fault{}}, nil
	}
	if err != nil {
		return Status{}, err
	}
	nodes, err := plan.Nodes(config.Nodes)
	if err != nil {
		return Status{}, err
	}
	faults, err := Faults()
	if err != nil {
		return Status{}, err
	}
	status := Status{
		Cluster: "up", Server: Server, Kubeconfig: config.Kubeconfig, AuditLog: plan.AuditLog, Logs: plan.Logs,
		Faults: append([]Fault{}, faults...),
	}
	if status.Processes, err = lookAtProcesses(nodes, faults); err != nil {
		return Status{}, err
	}
	for _, process := range status.Processes {
		if process.State != "running" {
			status.Cluster = "partial"
		}
	}
	status.Nodes = lookAtNodes(ctx, nodes)
	return status, nil
}

func lookAtNodes(ctx context.Context, nodes []plan.Node) []NodeStatus {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var ready map[string]bool
	if client, err := kube.New(Server, pki.Store{Dir: plan.PKI}, "admin"); err == nil {
		ready, _ = client.NodesReady(ctx)
	}
	list := make([]NodeStatus, len(nodes))
	for i, n := range nodes {
		list[i] = NodeStatus{Node: n, Ready: "unknown", Link: "down"}
		if is, known := ready[n.Name]; known {
			list[i].Ready = fmt.Sprint(is)
		}
		if network.LinkUp(n) {
			list[i].Link = "up"
		}
	}
	return list
}

func lookAtProcesses(nodes []plan.Node, faults []Fault) ([]ProcessStatus, error) {
	var list []ProcessStatus
	for _, p := range expected(nodes) {
		record, err := proc.Table{Dir: plan.Records}.Get(p.name)
		if err != nil {
			return nil, err
		}
		status := ProcessStatus{Name: p.name, State: "ended", Log: plan.Log(p.name)}
		switch {
		case record.Alive() && has(faults, Frozen, p.node):
			status.State, status.PID = "frozen", record.PID
		case record.Alive():
			status.State, status.PID = "running", record.PID
		case has(faults, Stopped, p.name), has(faults, Killed, p.node),
			p.kubelet && has(faults, KubeletStopped, p.node):
			status.State = "stopped"
		}
		list = append(list, status)
	}
	return list, nil
}

type expectedProcess struct {
	name, node string
	kubelet    bool
}

// expected are the processes of a cluster that is up.
func expected(nodes []plan.Node) []expectedProcess {
	var list []expectedProcess
	for _, name := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "provisioner",
	} {
		list = append(list, expectedProcess{name: name})
	}
	for _, n := range nodes {
		list = append(list,
			expectedProcess{name: n.Containerd(), node: n.Name},
			expectedProcess{name: n.Kubelet(), node: n.Name, kubelet: true},
			expectedProcess{name: n.KubeProxy(), node: n.Name})
	}
	return list
}

// Print writes the status as tables.
func (s Status) Print(out io.Writer) error {
	fmt.Fprintf(out, "cluster     %s\n", s.Cluster)
	if s.Cluster == "down" {
		return nil
	}
	fmt.Fprintf(out, "kubeconfig  %s\naudit log   %s\nlogs        %s\n\n", s.Kubeconfig, s.AuditLog, s.Logs)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tREADY\tLINK\tADDRESS\tPODS")
	for _, n := range s.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.Ready, n.Link, n.IP, n.PodCIDR)
	}
	fmt.Fprintln(table, "\nPROCESS\tSTATE\tPID")
	for _, p := range s.Processes {
		pid := "-"
		if p.PID != 0 {
			pid = fmt.Sprint(p.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Name, p.State, pid)
	}
	if len(s.Faults) > 0 {
		fmt.Fprintln(table, "\nFAULT\tFOR")
		for _, f := range s.Faults {
			fmt.Fprintf(table, "%s\t%s\n", f, time.Since(f.Since).Round(time.Second))
		}
	}
	return table.Flush()
}

// FindNode returns the node of that name, for commands that change nothing.
func FindNode(name string) (plan.Node, error) {
	config, err := readConfig()
	if err != nil {
		return plan.Node{}, err
	}
	nodes, err := plan.Nodes(config.Nodes)
	if err != nil {
		return plan.Node{}, err
	}
	return plan.Find(nodes, name)
}

// RunningNodes returns the nodes whose container runtime runs: all but those
// that were killed or frozen.
func RunningNodes() ([]plan.Node, error) {
	config, err := readConfig()
	if err != nil {
		return nil, err
	}
	nodes, err := plan.Nodes(config.Nodes)
	if err != nil {
		return nil, err
	}
	faults, err := Faults()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(nodes, func(n plan.Node) bool {
		return has(faults, Killed, n.Name) || has(faults, Frozen, n.Name)
	}), nil
}

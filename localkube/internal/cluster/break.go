package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"toban.dev/localkube/internal/mount"
	"toban.dev/localkube/internal/network"
	"toban.dev/localkube/internal/plan"
)

// API is what a node can be cut off from beside other nodes.
const API = "api"

// KillNode takes a node's power away: its cable goes dead and all that runs on
// it ends at once.
func (c *Cluster) KillNode(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := record(Killed, name, ""); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	if err := c.tree.Kill(ctx, n.Cgroup()); err != nil {
		return err
	}
	for _, process := range []string{n.Kubelet(), n.KubeProxy(), n.Containerd()} {
		if err := c.table.Stop(ctx, process, 0); err != nil {
			return err
		}
	}
	// What does not run stands not still, and cannot be attended.
	return forget(func(f Fault) bool { return f.On == name && (f.Kind == Frozen || f.Kind == KubeletStopped) })
}

// StartNode gives a killed node its power back. As after a reboot, its mounts
// and what was in /run are gone, and its disk is as it was.
func (c *Cluster) StartNode(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	faults, err := Faults()
	if err != nil {
		return err
	}
	if has(faults, Killed, name) {
		if err := c.reboot(ctx, n); err != nil {
			return err
		}
	}
	if err := forget(func(f Fault) bool { return f.Kind == Killed && f.On == name }); err != nil {
		return err
	}
	if err := c.connect(ctx); err != nil {
		return err
	}
	if err := c.startRuntime(ctx, n); err != nil {
		return err
	}
	if has(faults, KubeletStopped, name) {
		return nil
	}
	return c.startNodes(n)
}

// reboot removes what a reboot would.
func (c *Cluster) reboot(ctx context.Context, n plan.Node) error {
	// A start that was killed may have left something running.
	if err := c.tree.Kill(ctx, n.Cgroup()); err != nil {
		return err
	}
	if err := mount.Remove(n.Dir()); err != nil {
		return err
	}
	for _, volatile := range []string{filepath.Join(n.Run(), "containerd"), filepath.Join(n.Run(), "s"), filepath.Join(n.Run(), "runc")} {
		if err := mount.RemoveTree(volatile); err != nil {
			return err
		}
	}
	return nil
}

// CutNode parts a node from the API, or from other nodes, or, if from is
// empty, from everything.
func (c *Cluster) CutNode(ctx context.Context, name string, from []string) error {
	cuts, err := c.cuts(name, from)
	if err != nil {
		return err
	}
	for _, cut := range cuts {
		if err := record(cut.Kind, cut.On, cut.From); err != nil {
			return err
		}
	}
	return c.connect(ctx)
}

// JoinNode undoes CutNode: the given cuts, or, if from is empty, all of them.
func (c *Cluster) JoinNode(ctx context.Context, name string, from []string) error {
	cuts, err := c.cuts(name, from)
	if err != nil {
		return err
	}
	err = forget(func(f Fault) bool {
		if len(from) == 0 {
			return f.concerns(name) && (f.Kind == Cut || f.Kind == CutFromAPI || f.Kind == CutFromNode)
		}
		return slices.ContainsFunc(cuts, f.is)
	})
	if err != nil {
		return err
	}
	return c.connect(ctx)
}

// cuts says as faults what the user says as names.
func (c *Cluster) cuts(name string, from []string) ([]Fault, error) {
	if _, err := plan.Find(c.nodes, name); err != nil {
		return nil, err
	}
	if len(from) == 0 {
		return []Fault{{Kind: Cut, On: name}}, nil
	}
	var cuts []Fault
	for _, peer := range from {
		if peer == API {
			cuts = append(cuts, Fault{Kind: CutFromAPI, On: name})
			continue
		}
		if _, err := plan.Find(c.nodes, peer); err != nil {
			return nil, fmt.Errorf("%w; the API server is %q", err, API)
		}
		if peer == name {
			return nil, fmt.Errorf("%s cannot be cut off from itself", name)
		}
		cuts = append(cuts, Fault{Kind: CutFromNode, On: name, From: peer})
	}
	return cuts, nil
}

// FreezeNode makes all that runs on a node stand still. Its kernel still
// answers: connections stay open, and nobody speaks.
func (c *Cluster) FreezeNode(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := c.refuseIfKilled(name); err != nil {
		return err
	}
	if err := record(Frozen, name, ""); err != nil {
		return err
	}
	return c.tree.Freeze(ctx, n.Cgroup(), true)
}

// ThawNode undoes FreezeNode.
func (c *Cluster) ThawNode(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := c.tree.Freeze(ctx, n.Cgroup(), false); err != nil {
		return err
	}
	return forget(func(f Fault) bool { return f.Kind == Frozen && f.On == name })
}

// StopKubelet ends a node's kubelet and leaves its Pods running.
func (c *Cluster) StopKubelet(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := c.refuseIfKilled(name); err != nil {
		return err
	}
	if err := record(KubeletStopped, name, ""); err != nil {
		return err
	}
	return c.table.Stop(ctx, n.Kubelet(), 5*time.Second)
}

// StartKubelet undoes StopKubelet.
func (c *Cluster) StartKubelet(_ context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := c.refuseIfKilled(name); err != nil {
		return err
	}
	if err := c.startNodes(n); err != nil {
		return err
	}
	return forget(func(f Fault) bool { return f.Kind == KubeletStopped && f.On == name })
}

func (c *Cluster) refuseIfKilled(name string) error {
	faults, err := Faults()
	if err == nil && has(faults, Killed, name) {
		err = fmt.Errorf("%s has been killed: `localkube node start %[1]s` brings it back", name)
	}
	return err
}

// ControlProcesses are the names by which the user stops and starts them.
var ControlProcesses = map[string]string{
	"api":                "kube-apiserver",
	"etcd":               "etcd",
	"controller-manager": "kube-controller-manager",
	"scheduler":          "kube-scheduler",
	"dns":                "coredns",
	"provisioner":        "provisioner",
}

// StopControl kills a process of the control plane, without asking it first.
func (c *Cluster) StopControl(ctx context.Context, name string) error {
	process, known := ControlProcesses[name]
	if !known {
		return unknownControl(name)
	}
	if err := record(Stopped, process, ""); err != nil {
		return err
	}
	return c.table.Stop(ctx, process, 0)
}

// StartControl undoes StopControl.
func (c *Cluster) StartControl(name string) error {
	process, known := ControlProcesses[name]
	if !known {
		return unknownControl(name)
	}
	if err := c.startControl(process); err != nil {
		return err
	}
	return forget(func(f Fault) bool { return f.Kind == Stopped && f.On == process })
}

func unknownControl(name string) error {
	return fmt.Errorf("no part of the control plane is called %q: there are api, controller-manager, dns, etcd, provisioner and scheduler", name)
}

// connect makes the network be as the faults say, of all nodes: a Service's
// address must lead the host through a node that has a cable.
func (c *Cluster) connect(ctx context.Context) error {
	faults, err := Faults()
	if err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := network.Apply(ctx, n, c.cutOf(n, faults)); err != nil {
			return err
		}
	}
	return network.RouteServices(ctx, c.gateway(faults))
}

func (c *Cluster) cutOf(n plan.Node, faults []Fault) network.Cut {
	cut := network.Cut{
		Link: has(faults, Cut, n.Name) || has(faults, Killed, n.Name),
		API:  has(faults, CutFromAPI, n.Name),
	}
	for _, f := range faults {
		if peer, err := plan.Find(c.nodes, f.From); err == nil && f.Kind == CutFromNode && f.On == n.Name {
			cut.Nodes = append(cut.Nodes, peer)
		}
	}
	return cut
}

// gateway is the first node that has its cable.
func (c *Cluster) gateway(faults []Fault) plan.Node {
	for _, n := range c.nodes {
		if !c.cutOf(n, faults).Link {
			return n
		}
	}
	return c.nodes[0]
}

// heal undoes every fault, so far as it is not undone by starting what does not run.
func (c *Cluster) heal(ctx context.Context) error {
	faults, err := Faults()
	if err != nil {
		return err
	}
	for _, f := range faults {
		c.say("undoing a fault: %s", f)
	}
	for _, n := range c.nodes {
		if err := c.tree.Freeze(ctx, n.Cgroup(), false); err != nil {
			return err
		}
		if has(faults, Killed, n.Name) {
			if err := c.reboot(ctx, n); err != nil {
				return err
			}
		}
	}
	if err := writeFaults(nil); err != nil {
		return err
	}
	return c.connect(ctx)
}

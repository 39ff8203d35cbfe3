package cluster

import (
	"context"
	"errors"
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
	err = c.inflict(ctx, []Fault{{Kind: Killed, On: name}}, func() error {
		if err := c.connect(ctx); err != nil {
			return err
		}
		return c.endAll(ctx, n)
	})
	if err != nil {
		return err
	}
	// What does not run stands not still, and cannot be attended.
	return forget(func(f Fault) bool { return f.On == name && (f.Kind == Frozen || f.Kind == KubeletStopped) })
}

// endAll ends all that runs on a node, even what is frozen.
func (c *Cluster) endAll(ctx context.Context, n plan.Node) error {
	if err := c.tree.Kill(ctx, n.Cgroup()); err != nil {
		return err
	}
	for _, process := range []string{n.Kubelet(), n.KubeProxy(), n.Containerd()} {
		if err := c.table.Stop(ctx, process, 0); err != nil {
			return err
		}
	}
	return nil
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
	} else if err := refuse(faults, name, Frozen); err != nil {
		return err
	}
	// A kill that was interrupted may have left it noted as frozen too.
	if err := forget(func(f Fault) bool { return f.On == name && (f.Kind == Killed || f.Kind == Frozen) }); err != nil {
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
	return c.startNodes(ctx, n)
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
	for _, volatile := range []string{
		filepath.Join(n.Run(), "containerd"), filepath.Join(n.Run(), "s"), filepath.Join(n.Run(), "runc"),
	} {
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
	return c.inflict(ctx, cuts, func() error { return c.connect(ctx) })
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
	if err := refuseIf(name, Killed); err != nil {
		return err
	}
	return c.inflict(ctx, []Fault{{Kind: Frozen, On: name}}, func() error {
		err := c.tree.Freeze(ctx, n.Cgroup(), true)
		if err != nil { // some of it may stand still
			err = errors.Join(err, c.tree.Freeze(context.WithoutCancel(ctx), n.Cgroup(), false))
		}
		return err
	})
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

// StopKubelet ends a node's kubelet and leaves its Pods running. What is frozen
// may not even die of a SIGKILL.
func (c *Cluster) StopKubelet(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := refuseIf(name, Killed, Frozen); err != nil {
		return err
	}
	return c.inflict(ctx, []Fault{{Kind: KubeletStopped, On: name}}, func() error {
		return c.table.Stop(ctx, n.Kubelet(), 5*time.Second)
	})
}

// StartKubelet undoes StopKubelet. What is started on a frozen node would stand
// still before it is the kubelet.
func (c *Cluster) StartKubelet(ctx context.Context, name string) error {
	n, err := plan.Find(c.nodes, name)
	if err != nil {
		return err
	}
	if err := refuseIf(name, Killed, Frozen); err != nil {
		return err
	}
	if err := c.startNodes(ctx, n); err != nil {
		return err
	}
	return forget(func(f Fault) bool { return f.Kind == KubeletStopped && f.On == name })
}

// refuseIf returns an error if a node is broken in one of these ways.
func refuseIf(name string, kinds ...Kind) error {
	faults, err := Faults()
	if err != nil {
		return err
	}
	return refuse(faults, name, kinds...)
}

func refuse(faults []Fault, name string, kinds ...Kind) error {
	for _, kind := range kinds {
		switch {
		case !has(faults, kind, name):
		case kind == Killed:
			return fmt.Errorf("%s has been killed: `localkube node start %[1]s` brings it back", name)
		case kind == Frozen:
			return fmt.Errorf("%s is frozen: thaw it first, with `localkube node thaw %[1]s`", name)
		default:
			return fmt.Errorf("%s is %s", name, kind)
		}
	}
	return nil
}

// inflict breaks something, and notes it. If it could not be broken, the network
// is again as it was before.
func (c *Cluster) inflict(ctx context.Context, faults []Fault, do func() error) error {
	err := inflict(plan.FaultsFile, faults, do)
	if err != nil {
		err = errors.Join(err, c.connect(context.WithoutCancel(ctx)))
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
	return c.inflict(ctx, []Fault{{Kind: Stopped, On: process}}, func() error {
		return c.table.Stop(ctx, process, 0)
	})
}

// StartControl undoes StopControl.
func (c *Cluster) StartControl(ctx context.Context, name string) error {
	process, known := ControlProcesses[name]
	if !known {
		return unknownControl(name)
	}
	if err := c.startControl(ctx, process); err != nil {
		return err
	}
	return forget(func(f Fault) bool { return f.Kind == Stopped && f.On == process })
}

func unknownControl(name string) error {
	return fmt.Errorf("no part of the control plane is called %q: there are api, controller-manager, dns, etcd, "+
		"provisioner and scheduler", name)
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
	if err := writeFaults(plan.FaultsFile, nil); err != nil {
		return err
	}
	return c.connect(ctx)
}

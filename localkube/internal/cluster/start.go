package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toban.dev/localkube/internal/image"
	"toban.dev/localkube/internal/kube"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/proc"
	"toban.dev/localkube/internal/render"
)

// How long things may take on a slow machine before something must be wrong.
const (
	startLimit = 2 * time.Minute
	poll       = 25 * time.Millisecond
)

// start starts everything that does not run, in the order in which one needs
// another and otherwise all at once.
func (c *Cluster) start(ctx context.Context, pauseTar string, began time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := c.client()
	if err != nil {
		return err
	}
	stage := func(what string) { c.say("%6.1fs  %s", time.Since(began).Seconds(), what) }

	err = together(cancel,
		func() error { return c.startAPI(ctx, client) },
		func() error { return c.startRuntimes(ctx, pauseTar) })
	if err != nil {
		return err
	}
	stage("the API server and the nodes' containerd run")
	err = together(cancel,
		func() error { return c.startControllers(ctx, client) },
		func() error { return c.startNodes(ctx, c.nodes...) })
	if err != nil {
		return err
	}
	if err := c.awaitUsable(ctx, client); err != nil {
		return err
	}
	stage(fmt.Sprintf("%d nodes are Ready", len(c.nodes)))
	return nil
}

func (c *Cluster) startAPI(ctx context.Context, client *kube.Client) error {
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := c.startControl(ctx, name); err != nil {
			return err
		}
	}
	return c.await(ctx, []string{"etcd", "kube-apiserver"}, "the API server to be ready", func() error {
		return client.Ready(ctx)
	})
}

func (c *Cluster) startControllers(ctx context.Context, client *kube.Client) error {
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		if err := c.startControl(ctx, name); err != nil {
			return err
		}
	}
	for _, object := range render.Objects() {
		if err := client.Apply(ctx, object.Path, object.YAML); err != nil {
			return fmt.Errorf("make what the cluster itself needs: %w", err)
		}
	}
	for _, name := range []string{"coredns", "provisioner"} {
		if err := c.startControl(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// startRuntimes starts containerd on every node and gives it the one image
// without which no Pod can be.
func (c *Cluster) startRuntimes(ctx context.Context, pauseTar string) error {
	var steps []func() error
	for _, n := range c.nodes {
		steps = append(steps, func() error {
			if err := c.startRuntime(ctx, n); err != nil {
				return err
			}
			return image.Load(ctx, []image.Node{{Name: n.Name, Socket: n.Socket()}}, pauseTar, "")
		})
	}
	return together(nil, steps...)
}

func (c *Cluster) startRuntime(ctx context.Context, n plan.Node) error {
	err := c.startOnNode(ctx, n, n.Containerd(), render.ContainerdCommand(c.Programs, n))
	if err != nil {
		return err
	}
	return c.await(ctx, []string{n.Containerd()}, n.Containerd()+" to answer", func() error {
		return answers("unix", n.Socket())
	})
}

// answers returns nil if somebody listens there.
func answers(kind, address string) error {
	conn, err := net.DialTimeout(kind, address, time.Second)
	if err == nil {
		_ = conn.Close() // nothing was said
	}
	return err
}

// startNodes starts what makes namespaces with a container runtime nodes.
func (c *Cluster) startNodes(ctx context.Context, nodes ...plan.Node) error {
	for _, n := range nodes {
		if err := c.startOnNode(ctx, n, n.Kubelet(), render.KubeletCommand(c.Programs, n)); err != nil {
			return err
		}
		if err := c.startOnNode(ctx, n, n.KubeProxy(), render.KubeProxyCommand(c.Programs, n)); err != nil {
			return err
		}
	}
	return nil
}

// awaitUsable waits until Pods can be made, and run on every node.
func (c *Cluster) awaitUsable(ctx context.Context, client *kube.Client) error {
	names := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns", "provisioner"}
	for _, n := range c.nodes {
		names = append(names, n.Containerd(), n.Kubelet(), n.KubeProxy())
	}
	return c.await(ctx, names, "the nodes to be Ready", func() error {
		// Without its account, which the controller manager makes, a Pod is refused.
		if err := client.Has(ctx, "/api/v1/namespaces/default/serviceaccounts/default"); err != nil {
			return err
		}
		ready, err := client.NodesReady(ctx)
		if err != nil {
			return err
		}
		for _, n := range c.nodes {
			if !ready[n.Name] {
				return fmt.Errorf("%s is not Ready; its kubelet's log is %s", n.Name, plan.Log(n.Kubelet()))
			}
			// The API server takes a node that has just been lost for Ready still.
			if err := answers("tcp", n.IP+":10250"); err != nil {
				return fmt.Errorf("the kubelet of %s: %w", n.Name, err)
			}
		}
		return nil
	})
}

// await calls probe until it returns nil. It gives up early when one of the
// processes has ended, and then shows the last it said.
func (c *Cluster) await(ctx context.Context, processes []string, what string, probe func() error) error {
	for deadline := time.Now().Add(startLimit); ; {
		err := probe()
		if err == nil {
			return nil
		}
		for _, name := range processes {
			if record, readErr := c.table.Get(name); readErr != nil || !record.Alive() {
				log := plan.Log(name)
				return fmt.Errorf("%s has ended while waiting for %s. The last lines of %s:\n%s",
					name, what, log, proc.Tail(log, 15))
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s: %w", startLimit, what, err)
		}
		if err := pause(ctx, poll); err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// startControl starts one process of the control plane.
func (c *Cluster) startControl(ctx context.Context, name string) error {
	command := map[string]func() []string{
		"etcd":                    func() []string { return render.EtcdCommand(c.Programs, c.store, c.EtcdFsync) },
		"kube-apiserver":          func() []string { return render.APIServerCommand(c.Programs, c.store) },
		"kube-controller-manager": func() []string { return render.ControllerManagerCommand(c.Programs, c.store) },
		"kube-scheduler":          func() []string { return render.SchedulerCommand(c.Programs) },
		"coredns":                 func() []string { return render.CoreDNSCommand(c.Programs) },
		"provisioner":             func() []string { return render.ProvisionerCommand(c.Self) },
	}[name]
	return c.table.Start(ctx, proc.Spec{
		Name: name, Args: command(), Env: c.environment(), Log: plan.Log(name),
		Cgroups: c.tree.Dirs(plan.CgroupControl),
	})
}

// startOnNode starts one of the node's own processes.
func (c *Cluster) startOnNode(ctx context.Context, n plan.Node, name string, command []string) error {
	return c.table.Start(ctx, proc.Spec{
		Name: name, Args: command, Env: c.environment(), Log: plan.Log(name),
		Netns: n.NetnsPath(), Cgroups: c.tree.Dirs(n.SystemCgroup()),
	})
}

// environment is all that the processes get of one: where programs are, and how seldom they collect garbage. What
// prepare found, or installed, in this program's PATH is found by them too.
func (c *Cluster) environment() []string {
	env := []string{"PATH=" + c.Programs.Containerd + ":" + filepath.Clean(c.Programs.Runc) + ":" + os.Getenv("PATH")}
	if percent := os.Getenv("GOGC"); percent != "" {
		env = append(env, "GOGC="+percent)
	}
	return env
}

// together runs all steps at once and returns what went wrong. The first error
// cancels the others, whose complaints about that are left out.
func together(cancel func(), steps ...func() error) error {
	errs := make([]error, len(steps))
	var group sync.WaitGroup
	for i, step := range steps {
		group.Go(func() {
			if errs[i] = step(); errs[i] != nil && cancel != nil {
				cancel()
			}
		})
	}
	group.Wait()
	causes := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return errors.Is(err, context.Canceled) })
	if err := errors.Join(causes...); err != nil {
		return err
	}
	return errors.Join(errs...)
}

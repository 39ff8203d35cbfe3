package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"toban.dev/localkube/internal/build"
	"toban.dev/localkube/internal/hosts"
	"toban.dev/localkube/internal/image"
	"toban.dev/localkube/internal/kubeconfig"
	"toban.dev/localkube/internal/machine"
	"toban.dev/localkube/internal/network"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/render"
	"toban.dev/localkube/internal/volume"
)

// Options are the user's wishes for a start. Zero values are no wish.
type Options struct {
	Nodes      int
	EtcdFsync  bool
	Kubeconfig string
}

// Up makes the cluster be up: what is missing is built, made and started, what
// has failed or was broken on purpose is mended, what runs is left alone.
func Up(ctx context.Context, out io.Writer, options Options) error {
	began := time.Now()
	c, err := acquire(ctx, out)
	if err != nil {
		return err
	}
	defer c.Close()
	programs, pauseTar, err := prepare(ctx, out)
	if err != nil {
		return err
	}
	// Building is done once, starting every time: only the latter is timed.
	if built := time.Since(began); built > time.Second {
		began = time.Now()
	}
	if err := c.decide(options, programs); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{c.lay, c.heal} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := c.start(ctx, pauseTar, began); err != nil {
		return err
	}
	return c.finish(began)
}

// toRun is what a cluster and its volumes need to run on this machine.
func toRun() []machine.Need { return slices.Concat(machine.ToRun, volume.Needs()) }

// Needs is all that localkube takes on this machine: to run a cluster, to build
// its programs, and to make images.
func Needs() []machine.Need { return slices.Concat(toRun(), machine.ToBuildRunc, image.Needs) }

// prepare sees to all that can be kept when the cluster goes: Debian packages,
// programs, the image of the Pods' sandbox.
func prepare(ctx context.Context, out io.Writer) (render.Programs, string, error) {
	var programs render.Programs
	builder, err := build.NewBuilder(out)
	if err != nil {
		return programs, "", err
	}
	missing, err := builder.Missing(ctx, build.All)
	if err != nil {
		return programs, "", err
	}
	needs := toRun()
	for _, recipe := range missing {
		if recipe.CGO {
			needs = slices.Concat(machine.ToBuildRunc, needs)
		}
	}
	if err := machine.Install(ctx, needs, out); err != nil {
		return programs, "", err
	}
	for _, want := range []struct {
		recipe build.Recipe
		dir    *string
	}{
		{build.Kubernetes, &programs.Kubernetes},
		{build.Containerd, &programs.Containerd},
		{build.CoreDNS, &programs.CoreDNS},
		{build.Runc, &programs.Runc},
	} {
		if *want.dir, err = builder.Get(ctx, want.recipe); err != nil {
			return programs, "", err
		}
	}
	pauseTar, err := image.Pause(ctx, builder.Cache)
	return programs, pauseTar, err
}

// decide settles what the cluster is and notes it, before anything is made.
func (c *Cluster) decide(options Options, programs render.Programs) error {
	config, err := readConfig()
	switch {
	case errors.Is(err, errNone):
		config = Config{Nodes: options.Nodes, EtcdFsync: options.EtcdFsync}
		if config.Nodes == 0 {
			config.Nodes = 3
		}
	case err != nil:
		return err
	case options.Nodes != 0 && options.Nodes != config.Nodes:
		return fmt.Errorf("there is a cluster of %d nodes already: run `localkube down` first to have one of %d",
			config.Nodes, options.Nodes)
	}
	config.Programs = programs
	if config.Kubeconfig, err = filepath.Abs(options.Kubeconfig); err != nil {
		return err
	}
	if config.Self, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := c.configure(config); err != nil {
		return err
	}
	return writeJSON(plan.ConfigFile, config)
}

// lay makes all that the processes need to find: identities, files, networks, cgroups.
func (c *Cluster) lay(ctx context.Context) error {
	if err := machine.SaveSettings(plan.SysctlFile); err != nil {
		return err
	}
	if err := c.identities(); err != nil {
		return err
	}
	if err := c.files(); err != nil {
		return err
	}
	if err := c.cgroups(); err != nil {
		return err
	}
	if err := network.Up(ctx, c.nodes); err != nil {
		return err
	}
	var entries []hosts.Entry
	for _, n := range c.nodes {
		entries = append(entries, hosts.Entry{IP: n.IP, Name: n.Name})
	}
	return hosts.Update("/etc/hosts", entries)
}

func (c *Cluster) files() error {
	files := render.ControlPlane(c.nodes)
	for _, n := range c.nodes {
		files = append(files, render.Node(n, c.Programs, c.store, !machine.CanLowerOOMScores())...)
	}
	for _, file := range files {
		if err := writeFile(file.Path, file.Text); err != nil {
			return fmt.Errorf("write the configuration: %w", err)
		}
	}
	dirs := []string{plan.Records, plan.Volumes, plan.Logs}
	for _, n := range c.nodes {
		dirs = append(dirs, n.Run(), n.Path("volume-plugins"), n.Path("pod-logs"), n.Path("kubelet"))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the cluster's directories: %w", err)
		}
	}
	return nil
}

// share is how many times the share of one process the cluster has where the processors don't suffice: a dozen kubectl
// or compilers beside it would otherwise leave it a twelfth of them, and its servers would be too slow for their
// probes.
const share = 10

func (c *Cluster) cgroups() error {
	paths := []string{plan.CgroupControl}
	for _, n := range c.nodes {
		paths = append(paths, n.SystemCgroup())
	}
	for _, path := range paths {
		if err := c.tree.Create(path); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		c.tree.Branch(n.Cgroup())
	}
	return c.tree.Favour(plan.CgroupRoot, share)
}

// finish hands the cluster over to the user.
func (c *Cluster) finish(began time.Time) error {
	text, err := c.store.Kubeconfig("ca", "admin", Server)
	if err != nil {
		return err
	}
	if err := kubeconfig.Write(c.Kubeconfig, Server, text); err != nil {
		return err
	}
	c.say("up with %d nodes in %s", len(c.nodes), time.Since(began).Round(100*time.Millisecond))
	c.say("  export KUBECONFIG=%s", c.Kubeconfig)
	c.say("  kubectl: %s", filepath.Join(c.Programs.Kubernetes, "kubectl"))
	return nil
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"toban.dev/localkube/internal/hosts"
	"toban.dev/localkube/internal/kubeconfig"
	"toban.dev/localkube/internal/machine"
	"toban.dev/localkube/internal/mount"
	"toban.dev/localkube/internal/network"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/volume"
)

// Down removes every trace of the cluster but what was built. It needs no
// cluster that works, nor a record of it: all that a start makes bears a name
// that tells whose it is. One step that fails does not keep the others from
// being tried, and what is left can be removed by calling it again.
func Down(ctx context.Context, out io.Writer) error {
	c, err := acquire(ctx, out)
	if err != nil {
		return err
	}
	defer c.Close()
	config, err := readConfig()
	if err != nil && !errors.Is(err, errNone) {
		c.say("going on without the cluster's settings: %s", err)
	}
	steps := []func() error{
		func() error { return c.endProcesses(ctx) },
		func() error { return volume.Cleanup(plan.Volumes) },
		func() error { return mount.Remove(plan.State, plan.Run) },
		func() error { return network.Down(ctx) },
		func() error { return c.tree.Remove(ctx, plan.CgroupRoot) },
		func() error { return hosts.Update("/etc/hosts", nil) },
		func() error { return machine.RestoreSettings(plan.SysctlFile) },
		removeStrays,
		func() error { return kubeconfig.Remove(config.Kubeconfig, Server) },
		func() error { return mount.RemoveTree(plan.Run) },
	}
	var errs []error
	for _, step := range steps {
		errs = append(errs, step())
	}
	if err := errors.Join(errs...); err != nil {
		// The state is kept: it has the logs, and the settings to restore.
		return fmt.Errorf("some of the cluster is left; when what is in the way is gone, run `localkube "+
			"down` again:\n%w", err)
	}
	if err := mount.RemoveTree(plan.State); err != nil {
		return err
	}
	return os.Remove(plan.LockFile)
}

// endProcesses ends all that is in the cluster's cgroups, and what is recorded
// and had not got there yet.
func (c *Cluster) endProcesses(ctx context.Context) error {
	errs := []error{c.tree.Kill(ctx, plan.CgroupRoot)}
	records, err := c.table.List()
	errs = append(errs, err)
	for _, record := range records {
		errs = append(errs, c.table.Stop(ctx, record.Name, 0))
	}
	return errors.Join(errs...)
}

// removeStrays removes what the cluster's programs write outside its
// directories, wherever they are told to write: CNI's notes on containers, and
// the kubelets' links to the logs of containers.
func removeStrays() error {
	const results, links = "/var/lib/cni/results", "/var/log/containers"
	notes, _ := filepath.Glob(filepath.Join(results, "localkube-*"))
	logs, _ := filepath.Glob(filepath.Join(links, "*"))
	errs := []error{}
	for _, path := range notes {
		errs = append(errs, os.Remove(path))
	}
	for _, path := range logs {
		if target, err := os.Readlink(path); err == nil && strings.HasPrefix(target, plan.State+"/") {
			errs = append(errs, os.Remove(path))
		}
	}
	for _, dir := range []string{results, filepath.Dir(results), links} {
		os.Remove(dir) //nolint:errcheck // if it is not empty, it is others' too
	}
	return errors.Join(errs...)
}

// Package cli is localkube's command line. A command parses what the user says
// and calls package cluster; it decides nothing itself.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"toban.dev/localkube/internal/cluster"
	"toban.dev/localkube/internal/image"
	"toban.dev/localkube/internal/plan"
	"toban.dev/localkube/internal/volume"
)

// Run runs what the command line says and returns the exit code.
func Run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	var spoken spokenError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &spoken):
		return max(spoken.ExitCode(), 1)
	default:
		fmt.Fprintln(os.Stderr, "localkube:", err)
		return 1
	}
}

// spokenError is how a command has ended that has said itself what is wrong.
type spokenError struct{ *exec.ExitError }

func root() *cobra.Command {
	command := &cobra.Command{
		Use:   "localkube",
		Short: "A real Kubernetes of several nodes on this machine, to try and to break",
		Long: `localkube runs a real Kubernetes on this machine: etcd, the control plane, and
nodes that are network namespaces with a kubelet, containerd and kube-proxy each.
It builds all of it from Go modules, once, and can break it on purpose.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddGroup(
		&cobra.Group{ID: "cluster", Title: "The cluster:"},
		&cobra.Group{ID: "faults", Title: "Breaking it and mending it:"},
		&cobra.Group{ID: "images", Title: "Images and programs:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			command.AddCommand(c)
		}
	}
	add("cluster", upCommand(), downCommand(), statusCommand(), execCommand())
	add("faults", nodeCommand(), controlCommand("stop", "Kill a part of the control plane"),
		controlCommand("start", "Start a stopped part of the control plane again"))
	add("images", assetsCommand(), packagesCommand(), image.Command(), image.LoadCommand(imageNodes))
	command.AddCommand(volume.Command())
	return command
}

// imageNodes are where images are loaded: the nodes that can take one.
func imageNodes(*cobra.Command) ([]image.Node, error) {
	nodes, err := cluster.RunningNodes()
	if err != nil {
		return nil, err
	}
	targets := make([]image.Node, len(nodes))
	for i, n := range nodes {
		targets[i] = image.Node{Name: n.Name, Socket: n.Socket()}
	}
	return targets, nil
}

// nodeNames completes the names of nodes.
func nodeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := []string{}
	if nodes, err := plan.Nodes(plan.MaxNodes); err == nil && len(args) == 0 {
		for _, n := range nodes[:3] {
			names = append(names, n.Name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

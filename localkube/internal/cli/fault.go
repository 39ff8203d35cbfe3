package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toban.dev/localkube/internal/cluster"
)

// change opens the cluster, calls do, and lets go of it.
func change(cmd *cobra.Command, do func(context.Context, *cluster.Cluster) error) error {
	c, err := cluster.Open(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer c.Close()
	return do(cmd.Context(), c)
}

func nodeCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "node",
		Short: "Break a node in one of several ways, and mend it",
		Long: `Break a node in one of several ways, and mend it. Every fault can be made twice
and undone twice; "localkube status" shows those there are, "localkube up" undoes all.`,
	}
	for _, verb := range []struct {
		name, short string
		do          func(c *cluster.Cluster, ctx context.Context, node string) error
	}{
		{"kill", "Take a node's power: link down, and every process and Pod killed", (*cluster.Cluster).KillNode},
		{"start", "Give a killed node its power back", (*cluster.Cluster).StartNode},
		{"freeze", "Make all that runs on a node stand still, Pods included", (*cluster.Cluster).FreezeNode},
		{"thaw", "Let a frozen node go on", (*cluster.Cluster).ThawNode},
		{"stop-kubelet", "Stop a node's kubelet; its Pods run on", (*cluster.Cluster).StopKubelet},
		{"start-kubelet", "Start a stopped kubelet again", (*cluster.Cluster).StartKubelet},
	} {
		command.AddCommand(&cobra.Command{
			Use: verb.name + " NODE", Short: verb.short, Args: cobra.ExactArgs(1), ValidArgsFunction: nodeNames,
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd,
					func(ctx context.Context, c *cluster.Cluster) error { return verb.do(c, ctx, args[0]) })
			},
		})
	}
	command.AddCommand(
		partCommand("cut", "Cut a node off: from everything, or from what --from names", (*cluster.Cluster).CutNode),
		partCommand("join", "Undo cuts of a node: all of them, or those that --from names",
			(*cluster.Cluster).JoinNode))
	return command
}

// partCommand is `localkube node cut` or `localkube node join`.
func partCommand(
	name, short string, do func(*cluster.Cluster, context.Context, string, []string) error,
) *cobra.Command {
	var from []string
	command := &cobra.Command{
		Use:   name + " NODE [--from api|NODE...]",
		Short: short,
		Example: strings.ReplaceAll(`  localkube node VERB worker0
  localkube node VERB worker0 --from api
  localkube node VERB worker0 --from worker1,worker2`, "VERB", name),
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && len(from) == 0 {
				return cobra.ExactArgs(1)(cmd, args)
			}
			// `--from worker1 worker2` says the same as `--from worker1,worker2`.
			others := slices.Concat(from, args[1:])
			return change(cmd,
				func(ctx context.Context, c *cluster.Cluster) error { return do(c, ctx, args[0], others) })
		},
	}
	command.Flags().StringSliceVar(&from, "from", nil, `"api" or names of nodes; without it, everything`)
	return command
}

// controlCommand is `localkube stop` or `localkube start`.
func controlCommand(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use: verb + " api|etcd|controller-manager|scheduler|dns|provisioner", Short: short, Args: cobra.ExactArgs(1),
		ValidArgs: []string{"api", "etcd", "controller-manager", "scheduler", "dns", "provisioner"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return change(cmd, func(ctx context.Context, c *cluster.Cluster) error {
				if verb == "stop" {
					return c.StopControl(ctx, args[0])
				}
				return c.StartControl(ctx, args[0])
			})
		},
	}
}

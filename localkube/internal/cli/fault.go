package cli

import (
	"context"

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
	type verb struct {
		name, short string
		do          func(ctx context.Context, c *cluster.Cluster, node string) error
	}
	for _, v := range []verb{
		{"kill", "Take a node's power: link down, and every process and Pod killed", func(ctx context.Context, c *cluster.Cluster, node string) error { return c.KillNode(ctx, node) }},
		{"start", "Give a killed node its power back", func(ctx context.Context, c *cluster.Cluster, node string) error { return c.StartNode(ctx, node) }},
		{"freeze", "Make all that runs on a node stand still, Pods included", func(ctx context.Context, c *cluster.Cluster, node string) error {
			return c.FreezeNode(ctx, node, true)
		}},
		{"thaw", "Let a frozen node go on", func(ctx context.Context, c *cluster.Cluster, node string) error {
			return c.FreezeNode(ctx, node, false)
		}},
		{"stop-kubelet", "Stop a node's kubelet; its Pods run on", func(ctx context.Context, c *cluster.Cluster, node string) error { return c.StopKubelet(ctx, node) }},
		{"start-kubelet", "Start a stopped kubelet again", func(ctx context.Context, c *cluster.Cluster, node string) error { return c.StartKubelet(ctx, node) }},
	} {
		command.AddCommand(&cobra.Command{
			Use: v.name + " NODE", Short: v.short, Args: cobra.ExactArgs(1), ValidArgsFunction: nodeNames,
			RunE: func(cmd *cobra.Command, args []string) error {
				return change(cmd, func(ctx context.Context, c *cluster.Cluster) error { return v.do(ctx, c, args[0]) })
			},
		})
	}
	command.AddCommand(
		partCommand("cut", "Cut a node off: from everything, or from what --from names",
			func(ctx context.Context, c *cluster.Cluster, node string, from []string) error {
				return c.CutNode(ctx, node, from)
			}),
		partCommand("join", "Undo cuts of a node: all of them, or those that --from names",
			func(ctx context.Context, c *cluster.Cluster, node string, from []string) error {
				return c.JoinNode(ctx, node, from)
			}))
	return command
}

func partCommand(name, short string, do func(context.Context, *cluster.Cluster, string, []string) error) *cobra.Command {
	var from []string
	command := &cobra.Command{
		Use: name + " NODE [--from api|NODE...]", Short: short, Args: cobra.MinimumNArgs(1), ValidArgsFunction: nodeNames,
		Example: "  localkube node " + name + " worker0\n  localkube node " + name + " worker0 --from api\n  localkube node " + name + " worker0 --from worker1,worker2",
		RunE: func(cmd *cobra.Command, args []string) error {
			// `--from worker1 worker2` says the same as `--from worker1,worker2`.
			if len(args) > 1 && len(from) == 0 {
				return cobra.ExactArgs(1)(cmd, args)
			}
			others := append(from, args[1:]...)
			return change(cmd, func(ctx context.Context, c *cluster.Cluster) error { return do(ctx, c, args[0], others) })
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
				return c.StartControl(args[0])
			})
		},
	}
}

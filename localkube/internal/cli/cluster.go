package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"toban.dev/localkube/internal/build"
	"toban.dev/localkube/internal/cluster"
	"toban.dev/localkube/internal/machine"
)

const defaultKubeconfig = ".local/kubeconfig"

func upCommand() *cobra.Command {
	var options cluster.Options
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or mend it",
		Long: `Start the cluster, and return once all nodes are Ready.

The first start on a machine builds Kubernetes, which takes minutes; later ones
take seconds. On a cluster that runs already, up starts what has ended, undoes
every fault, and writes the kubeconfig.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cluster.Up(cmd.Context(), cmd.ErrOrStderr(), options); err != nil {
				return err
			}
			if cmd.Flags().Changed("kubeconfig") {
				return nil
			}
			return linkKubectl(cmd)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Kubeconfig, "kubeconfig", defaultKubeconfig, "where to write the kubeconfig")
	flags.IntVar(&options.Nodes, "nodes", 0, "how many nodes (default: 3, or as many as there are)")
	flags.BoolVar(&options.EtcdFsync, "etcd-fsync", false, "let etcd sync its disk, as a real one does; slower")
	return command
}

// linkKubectl puts our kubectl beside the default kubeconfig, for machines
// that have none, or an older one.
func linkKubectl(cmd *cobra.Command) error {
	builder, err := build.NewBuilder(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	dir, err := builder.Get(cmd.Context(), build.Kubernetes)
	if err != nil {
		return err
	}
	link := filepath.Join(filepath.Dir(defaultKubeconfig), "bin", "kubectl")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(filepath.Join(dir, "kubectl"), link)
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and every trace of it",
		Long: `Remove the cluster: processes, mounts, network namespaces, the bridge, cgroups,
rules, lines in /etc/hosts, and all data. What was built is kept for the next
start. It works from any state, also after a crash or half a start.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Down(cmd.Context(), cmd.ErrOrStderr())
		},
	}
}

func statusCommand() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show nodes, processes and faults",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			status, err := cluster.Look(cmd.Context())
			if err != nil {
				return err
			}
			switch output {
			case "text":
				return status.Print(cmd.OutOrStdout())
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return fmt.Errorf("there is no output format %q: choose text or json", output)
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return command
}

func execCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "exec NODE -- COMMAND...",
		Short:             "Run a command in a node's network",
		Example:           "  localkube exec worker0 -- curl -s http://198.19.0.1",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: nodeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := machine.Check(); err != nil {
				return err
			}
			node, err := cluster.FindNode(args[0])
			if err != nil {
				return err
			}
			// `ip netns exec` would mount another /sys, in which the cgroups are hidden.
			run := exec.CommandContext(cmd.Context(), "nsenter",
				append([]string{"--net=" + node.NetnsPath(), "--"}, args[1:]...)...)
			run.Stdin, run.Stdout, run.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			err = run.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return spokenError{exit}
			}
			return err
		},
	}
}

func assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a directory with etcd, kube-apiserver and kubectl",
		Long: `Print a directory with etcd, kube-apiserver and kubectl, and build them first if
need be. It needs no cluster and no root. For tests with controller-runtime's envtest:

  export KUBEBUILDER_ASSETS="$(localkube assets)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			builder, err := build.NewBuilder(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			dir, err := builder.Get(cmd.Context(), build.Kubernetes)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), dir)
			return nil
		},
	}
}

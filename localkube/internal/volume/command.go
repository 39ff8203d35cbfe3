package volume

import (
	"github.com/spf13/cobra"
)

// Command is "localkube provisioner": the process that serves the cluster's
// volumes. The cluster starts it; it is not for users, so it is hidden.
func Command() *cobra.Command {
	var cfg Config
	cmd := &cobra.Command{
		Use:    "provisioner --kubeconfig FILE --root DIR",
		Short:  "Serve node-local volumes to the cluster",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return Run(cmd.Context(), cfg) },
	}
	cmd.Flags().StringVar(&cfg.Kubeconfig, "kubeconfig", "", "kubeconfig of an administrator")
	cmd.Flags().StringVar(&cfg.Root, "root", "", "directory that holds the volumes")
	_ = cmd.MarkFlagRequired("kubeconfig") // it fails only for a flag that there is not
	_ = cmd.MarkFlagRequired("root")
	return cmd
}

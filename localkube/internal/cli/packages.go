package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"toban.dev/localkube/internal/cluster"
	"toban.dev/localkube/internal/machine"
)

func packagesCommand() *cobra.Command {
	var install bool
	command := &cobra.Command{
		Use:   "packages [--install]",
		Short: "Print the Debian packages that localkube needs here, one per line",
		Long: `Print the Debian packages that localkube needs on this machine, one per line: to
run a cluster, to build its programs and to make images. Other commands install
what they need themselves; --install installs all that is missing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			needs := cluster.Needs()
			if install {
				return machine.InstallPackages(cmd.Context(), machine.Missing(needs), cmd.ErrOrStderr())
			}
			for _, name := range machine.Packages(needs) {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return nil
		},
	}
	command.Flags().BoolVar(&install, "install", false, "install those that are missing, and print nothing")
	return command
}

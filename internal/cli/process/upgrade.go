package process

import (
	"github.com/spf13/cobra"

	"toban.dev/internal/work/major"
)

// UpgradeDump is the process that pg_upgrade runs in the place of pg_dump.
func UpgradeDump() *cobra.Command {
	return &cobra.Command{
		Use:                "dump PROGRAM ARGUMENTS",
		Short:              "Run pg_dump for pg_upgrade, without what the new version would refuse",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return major.Dump(c.Context(), args[0], args[1:])
		},
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli/backup"
	"toban.dev/internal/cli/cluster"
	"toban.dev/internal/cli/complete"
	"toban.dev/internal/cli/drill"
	"toban.dev/internal/cli/logs"
	"toban.dev/internal/cli/plan"
	"toban.dev/internal/cli/psql"
	"toban.dev/internal/cli/report"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/cli/upgrade"
)

// completes is what kubectl calls to complete the words of its plugin kubectl-toban (kubectl 1.26 and later).
const completes = "kubectl_complete-toban"

// Root is the command that all verbs hang on. The verbs for people are there already.
func Root(version string) *cobra.Command {
	root := &cobra.Command{
		Use:           "toban",
		Short:         "Toban keeps PostgreSQL on duty in Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(verbs(version)...)
	complete.Verbs(root.Commands()...)
	return root
}

// verbs are those for people: the table of contents of this folder. A line is one verb, and begins with its folder;
// those without one are beside this file.
func verbs(version string) []*cobra.Command {
	return []*cobra.Command{
		// What there is.
		status.Status(),
		status.Top(),
		logs.Logs(),
		Console(version),
		report.Report(version, report.Parts{Status: status.Text, Top: status.CleanTop}),
		Version(version),
		// SQL.
		psql.PSQL(),
		// Servers.
		servers.Switchover(),
		servers.Restart(),
		servers.Rebuild(),
		servers.Stop(),
		servers.Start(),
		// Data that is kept, and comes back.
		backup.Backup(),
		restore.Verify(),
		restore.RestoreTo(),
		restore.Undelete(),
		restore.Promote(),
		// Changes, and what they do.
		plan.Plan(),
		upgrade.UpgradeTo(),
		drill.Drill(),
	}
}

// Plugin is the plugin of kubectl: the verbs for people, and no others.
func Plugin(version string) *cobra.Command {
	root := Root(version)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl toban"}
	return root
}

// IsPlugin says that a program is called by a name that makes it a plugin of kubectl, or what completes its words.
func IsPlugin(program string) bool { return strings.HasPrefix(filepath.Base(program), "kubectl") }

// Run runs a command with the program's arguments. It has said why it failed; exit is the code for that.
func Run(ctx context.Context, root *cobra.Command, exit func(error) int) int {
	if strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") == completes {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var ended *cluster.ExitError
	if errors.As(err, &ended) {
		return ended.Code // the program has said why
	}
	fmt.Fprintln(os.Stderr, "toban:", err)
	return exit(err)
}

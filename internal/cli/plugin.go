package cli

import (
	"github.com/spf13/cobra"

	"toban.dev/internal/cli/backup"
	"toban.dev/internal/cli/complete"
	"toban.dev/internal/cli/console"
	"toban.dev/internal/cli/drill"
	"toban.dev/internal/cli/logs"
	"toban.dev/internal/cli/plan"
	"toban.dev/internal/cli/psql"
	"toban.dev/internal/cli/report"
	"toban.dev/internal/cli/restore"
	"toban.dev/internal/cli/root"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/cli/status"
	"toban.dev/internal/cli/upgrade"
)

// Plugin is the plugin of kubectl: the verbs for people, and no others.
func Plugin(version string) *cobra.Command { return root.Plugin(root.New(version, Verbs(version)...)) }

// Verbs are those for people.
func Verbs(version string) []*cobra.Command {
	all := verbs(version)
	complete.Verbs(all...)
	return all
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
		report.Report(version, reported),
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

// reported are what other verbs show, and a report has too.
var reported = report.Parts{
	Status: status.Text,
	Top:    status.CleanTop,
}

// called are what other verbs do, and the console too.
var called = consoleVerbs{
	logs:  logs.Last,
	clone: restore.CloneOf,
	actions: map[string]action{
		console.DoSwitchover: servers.AskSwitchover,
		console.DoRestart:    servers.AskRestart,
		console.DoBackup:     backup.Ask,
	},
}

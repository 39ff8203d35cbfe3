// Command toban is the whole of Toban in one program: the operator, the agent in
// an instance's Pod, the init Job and the tools for people. It only puts the
// verbs of internal/cli together.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	// Schedules have time zones, and our image no files of them.
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli"
	"toban.dev/internal/cli/process"
	"toban.dev/internal/cli/root"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
)

// version is set when a release is built.
var version = "development"

// The main goroutine of an agent is the first thread of its process, which has to start postmasters (postgres.Parent).
func init() {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		runtime.LockOSThread()
	}
}

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return root.Run(ctx, command(os.Args[0]), exitCode)
}

func exitCode(err error) int {
	if errors.Is(err, postgres.ErrNoPrograms) {
		return naming.ExitImageUnusable
	}
	if process.Refused(err) {
		return naming.ExitRefused
	}
	return 1
}

// command has all verbs. Called by a name that makes it a plugin of kubectl, or what completes that plugin's words, it
// has those for people only.
func command(program string) *cobra.Command {
	toban := root.New(version)
	toban.AddCommand(cli.Verbs(version)...)
	if root.IsPlugin(program) {
		return root.Plugin(toban)
	}
	toban.AddCommand(process.Operator(version), process.Agent(), process.Guard(), process.BeforeStop(),
		process.Install(), process.Archive())
	toban.AddCommand(process.PodAnnexes()...)
	process.AddWork(toban)
	return toban
}

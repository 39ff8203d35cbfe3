// Command toban is the whole of Toban in one program: the operator, the agent in
// an instance's Pod, the init Job and the tools for people. It only puts the
// verbs of internal/cli together.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	// Schedules have time zones, and our image no files of them.
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli"
	"toban.dev/internal/cli/process"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/worker"
)

// version is set when a release is built.
var version = "development"

// completes is what kubectl calls to complete the words of its plugin kubectl-toban (kubectl 1.26 and later).
const completes = "kubectl_complete-toban"

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
	root := command(os.Args[0])
	if filepath.Base(os.Args[0]) == completes {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, os.Args[1:]...))
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var ended *cli.ExitError
	if errors.As(err, &ended) {
		return ended.Code // the program has said why
	}
	fmt.Fprintln(os.Stderr, "toban:", err)
	if errors.Is(err, postgres.ErrNoPrograms) {
		return naming.ExitImageUnusable
	}
	if worker.Refused(err) {
		return naming.ExitRefused
	}
	return 1
}

// command has all verbs. Called by a name that makes it a plugin of kubectl, or what completes that plugin's words, it
// has those for people only.
func command(program string) *cobra.Command {
	root := &cobra.Command{
		Use:           "toban",
		Short:         "Toban keeps PostgreSQL on duty in Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	backup, upgrade := cli.Backup(), cli.UpgradeTo()
	root.AddCommand(cli.Status(), cli.Plan(), cli.Switchover(), cli.Stop(), cli.Start(), backup,
		cli.RestoreTo(), cli.Undelete(), upgrade, cli.PSQL(), cli.Logs(), cli.Top(), cli.Restart(), cli.Rebuild(),
		cli.Verify(), cli.Drill(), cli.Report(version), cli.Version(version))
	cli.Complete(root.Commands()...)
	if strings.HasPrefix(filepath.Base(program), "kubectl") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl toban"}
		return root
	}
	backup.AddCommand(process.Take(), process.Keys(), process.Retain(), process.Restore(), process.Verify(),
		process.Inspect(), process.Copy(), process.Bring(), process.Find())
	upgrade.AddCommand(process.UpgradePods()...)
	root.AddCommand(process.Operator(version), process.Agent(), process.Guard(), process.BeforeStop(), process.Pooler(),
		process.Install(), process.Init(), process.Finish(), process.Archive(), process.Passwords(), process.Image(),
		process.Drill())
	return root
}

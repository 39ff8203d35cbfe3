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
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/worker"
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
	err := command(os.Args[0]).ExecuteContext(ctx)
	if err == nil {
		return 0
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

// command has all verbs. Called by a name that makes it a plugin of kubectl, it has those for
// people only.
func command(program string) *cobra.Command {
	root := &cobra.Command{
		Use:           "toban",
		Short:         "Toban keeps PostgreSQL on duty in Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	backup, upgrade := cli.Backup(), cli.UpgradeTo()
	root.AddCommand(cli.Status(), cli.Switchover(), backup, cli.RestoreTo(), cli.Undelete(), upgrade,
		cli.Version(version))
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl toban"}
		return root
	}
	backup.AddCommand(cli.Take(), cli.Keys(), cli.Retain(), cli.Restore(), cli.Verify(), cli.Inspect())
	upgrade.AddCommand(cli.UpgradePods()...)
	root.AddCommand(cli.Operator(version), cli.Agent(), cli.Guard(), cli.BeforeStop(), cli.Install(),
		cli.Init(), cli.Finish(), cli.Archive(), cli.Passwords(), cli.Image())
	return root
}

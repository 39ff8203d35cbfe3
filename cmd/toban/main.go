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
	"syscall"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
)

// version is set when a release is built.
var version = "development"

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "toban",
		Short:         "Toban keeps PostgreSQL on duty in Kubernetes",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(cli.Operator(version), cli.Agent(), cli.Install(), cli.Init(), cli.Version(version))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "toban:", err)
	if errors.Is(err, postgres.ErrNoPrograms) {
		return naming.ExitImageUnusable
	}
	return 1
}

// Command kubectl-toban is the plugin of kubectl alone: the verbs for people, as cmd/toban has them under this name,
// for systems on which operator and agent do not run (macOS, Windows). It must not import what runs a server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	// Schedules have time zones, and Windows no files of them.
	_ "time/tzdata"

	"toban.dev/internal/cli"
	"toban.dev/internal/cli/root"
)

// version is set when a release is built.
var version = "development"

func main() { os.Exit(run()) }

// run returns the exit code.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return root.Run(ctx, cli.Plugin(version), func(error) int { return 1 })
}

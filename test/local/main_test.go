// Package local is the second ring of tests: real PostgreSQL servers and real
// agents on this machine, without Kubernetes. Each agent is a process of its
// own, listening on a loopback address of its own.
package local

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"context"

	"github.com/spf13/cobra"

	"toban.dev/internal/cli/process"
)

// agentVariable makes this test program an agent, or what else its value names.
const agentVariable = "TOBAN_TEST_AGENT"

// command is what it can be: an agent, a pooler, or a kind of work.
func command(name string) *cobra.Command {
	switch name {
	case "1":
		return process.Agent()
	case "pooler":
		return process.Pooler()
	}
	root := &cobra.Command{Use: "toban"}
	process.AddWork(root)
	if work, rest, err := root.Find([]string{"work", name}); err != nil || len(rest) > 0 || work.Name() != name {
		return nil
	}
	root.SetArgs(append([]string{"work", name}, os.Args[1:]...))
	return root
}

// program is a copy of this test program that any user may run.
var program string

func TestMain(m *testing.M) {
	if command := command(os.Getenv(agentVariable)); command != nil {
		os.Exit(run(command))
	}
	folder, err := os.MkdirTemp("", "toban-local-")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err == nil {
		program, err = copyProgram(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func run(command *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// copyProgram copies the test program out of go test's private folder.
func copyProgram(folder string) (string, error) {
	in, err := os.Open(os.Args[0])
	if err != nil {
		return "", err
	}
	defer in.Close()
	target := filepath.Join(folder, "agent")
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(out, in); err != nil {
		return "", err
	}
	return target, out.Close()
}

package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"toban.dev/internal/postgres"
)

// CommandGuard is the verb by which this program is run as a guard.
const CommandGuard = "guard"

// guard is the process that ends a primary's server if the program that takes it over does not lead in time.
type guard struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// startGuard starts one. It ends the server at a moment of the monotonic clock, unless it hears before by the pipe.
func startGuard(of postgres.Handed, data string, at time.Duration) (*guard, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	defer read.Close()
	cmd := exec.Command("/proc/self/exe", CommandGuard, //nolint:noctx // it is this program
		"--postmaster", strconv.Itoa(of.PID), "--started", of.Started, "--data", data, "--at", at.String())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = read, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := postgres.Children.Start(cmd); err != nil {
		_ = write.Close() // nothing was written
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	return &guard{cmd, write}, nil
}

// dismiss ends it: the exchange did not take place.
func (g *guard) dismiss() {
	_, _ = g.pipe.Write([]byte{1}) // one that has ended needs no word
	_ = g.pipe.Close()             // likewise
	go func() { _ = postgres.Children.Wait(g.cmd) }()
}

// Guard is that process: it ends a server at a moment of the monotonic clock, unless it hears of somebody who leads, or
// whose end is the server's.
func Guard(ctx context.Context, of postgres.Handed, data string, at time.Duration) error {
	when, err := timeOf(at)
	if err != nil {
		return err
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = os.Stdin.Read(make([]byte, 1)) // its end is a word, too
	}()
	select {
	case <-heard:
		return nil
	case <-time.After(time.Until(when)):
	}
	return postgres.EndHanded(ctx, of, data) //nolint:wrapcheck // it says what
}

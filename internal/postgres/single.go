package postgres

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// letUsIn undoes what keeps the role postgres from its database. What is not there is refused, and the rest is done.
const letUsIn = "alter role postgres login\nalter database postgres allow_connections true\n"

// LetUsIn lets the role postgres log in to the database postgres again, on a primary that does not run. PostgreSQL does
// that itself, in a process that asks nobody who he is and lets no client in. No session of ours need be left, and what
// is configured to be loaded for sessions is not. It writes as the primary would: only who is to be one may do it.
// It is given up after singleDeadline. What is left of it then is killed, and keeps a server from being started until
// the kernel has let it go.
func (s *Server) LetUsIn(ctx context.Context) error {
	return s.letUsIn(ctx, singleDeadline, Children.Wait)
}

// singleDeadline is how long PostgreSQL's single-user mode may take: it replays what a server has left that was ended
// at once. Nobody leads meanwhile, and a disk that hangs must not hold the start up for ever.
const singleDeadline = 30 * time.Second

// letUsIn does so. wait waits for the end of a program.
func (s *Server) letUsIn(ctx context.Context, within time.Duration, wait func(*exec.Cmd) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := s.clear(ctx); err != nil {
		return err
	}
	cmd := s.Programs.command(ctx, "postgres", "--single", "-D", s.Data.Path(), "-c", "session_preload_libraries=",
		"-c", "local_preload_libraries=", "-c", "synchronous_commit=local", "-c", "default_transaction_read_only=off",
		"-c", "lc_messages=C", "-c", "log_min_messages=error", "template1")
	cmd.Stdin = strings.NewReader(letUsIn)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out words
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, killedDelay
	var err error
	PostmastersParent.Do(func() { err = Children.Start(cmd) })
	if err == nil {
		err = awaitKilled(ctx, func() error { return wait(cmd) })
	}
	return letInOutcome(err, ctx.Err(), within, out.String())
}

// letInOutcome is what has become of the single-user mode, by its end, its context's, and what it said.
func letInOutcome(err, over error, within time.Duration, said string) error {
	if errors.Is(over, context.DeadlineExceeded) && err != nil {
		return fmt.Errorf("let the role postgres log in again: given up after %s: %w (%w): %s", within, over, err, said)
	}
	if err != nil {
		return fmt.Errorf("let the role postgres log in again: %w: %s", err, said)
	}
	if refused := refusals(said); refused != "" {
		return fmt.Errorf("let the role postgres log in again: %w: %s", errNotAllDone, refused)
	}
	return nil
}

// errNotAllDone says that the single-user mode has ended in order, as it also does where it refuses a statement.
var errNotAllDone = errors.New("PostgreSQL has refused a part of it")

// refusals are the lines of what PostgreSQL said that are errors.
func refusals(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if strings.Contains(line, "ERROR:") || strings.Contains(line, "FATAL:") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "; ")
}

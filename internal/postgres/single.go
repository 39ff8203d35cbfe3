package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// letUsIn undoes what keeps the role postgres from its database. What is not there is refused, and the rest is done.
const letUsIn = "alter role postgres login\nalter database postgres allow_connections true\n"

// LetUsIn lets the role postgres log in to the database postgres again, on a primary that does not run. PostgreSQL does
// that itself, in a process that asks nobody who he is and lets no client in. No session of ours need be left, and what
// is configured to be loaded for sessions is not. It writes as the primary would: only who is to be one may do it.
// It is given up after singleDeadline.
func (s *Server) LetUsIn(ctx context.Context) error { return s.letUsIn(ctx, singleDeadline) }

// singleDeadline is how long PostgreSQL's single-user mode may take: it replays what a server has left that was ended
// at once. Nobody leads meanwhile, and a disk that hangs must not hold the start up for ever.
const singleDeadline = 30 * time.Second

func (s *Server) letUsIn(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := s.clear(ctx); err != nil {
		return err
	}
	cmd := s.Programs.command(ctx, "postgres", "--single", "-D", s.Data.Path(), "-c", "session_preload_libraries=",
		"-c", "local_preload_libraries=", "-c", "synchronous_commit=local", "-c", "default_transaction_read_only=off",
		"template1")
	cmd.Stdin = strings.NewReader(letUsIn)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	var err error
	PostmastersParent.Do(func() { err = Children.Start(cmd) })
	if err == nil {
		err = Children.Wait(cmd)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("let the role postgres log in again: given up after %s, and the server is started as it is: "+
			"%w: %s", within, ctx.Err(), out.String())
	}
	if err != nil {
		return fmt.Errorf("let the role postgres log in again: %w: %s", err, out.String())
	}
	return nil
}

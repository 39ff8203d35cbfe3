package postgres

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// fenceGrace is how long a postmaster may take to end its processes itself, in
// order that it can log why and that its shared memory is left clean.
const fenceGrace = 300 * time.Millisecond

// Fence ends the server at once, in whatever state it is: an immediate stop, and
// after fenceGrace whatever works in the data directory is killed until nothing
// is left. Committed data is kept; the next start recovers. An error means that there still are processes,
// because the kernel does not let them go, when ctx ends.
func (p *Process) Fence(ctx context.Context) error {
	if err := p.Kill(ctx); err != nil {
		return err
	}
	return p.Gone(ctx)
}

// Kill is the first part of Fence. When it returns without an error, no process of the server runs its program any
// more, and so none can answer a client. What is left of it is within the kernel, mostly waiting for a disk, and ends
// before it comes back from there. Until then it may still write to the data directory what it had begun to write: see
// Gone.
func (p *Process) Kill(ctx context.Context) error {
	if !p.fenced.Swap(true) { // it has that time once
		_ = p.process.Signal(syscall.SIGQUIT) // it may have ended: then Done tells
		select {
		case <-p.done:
		case <-ctx.Done():
		case <-time.After(fenceGrace):
		}
	}
	_ = p.process.Kill()
	if err := killAll(ctx, p.data, endsInKernel); err != nil {
		return fmt.Errorf("fence the server: %w", err)
	}
	return nil
}

// Gone is the second part of Fence: it waits until nothing is left.
func (p *Process) Gone(ctx context.Context) error {
	if err := killAll(ctx, p.data, isGone); err != nil {
		return fmt.Errorf("fence the server: %w", err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("fence the server: the postmaster does not end: %w", ctx.Err())
	}
}

package postgres

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// letGoInterval is how often a server that stops is looked at, for sessions that can't end, and refusedInterval for
// those that it would not begin.
const (
	letGoInterval   = time.Second
	refusedInterval = 20 * time.Millisecond
)

// lastStep is how long a server may take to stop at once, and how long one that was killed may take to be gone.
const lastStep = 5 * time.Second

// Stop stops the server and waits for it. When ctx ends before it has stopped, it is stopped immediately, and then
// killed. A postmaster that is still there then waits within the kernel, mostly for a disk, and would be waited for
// without end: Stop has what is left of the server killed, so that nobody is answered any more, and returns. Done tells
// whether it has ended. Nor does it wait for a server that Kill ends meanwhile: what was killed ends at once, or hangs,
// and a fence waits for Stop.
func (p *Process) Stop(ctx context.Context, mode StopMode) {
	p.stop(ctx, mode, lastStep)
}

func (p *Process) stop(ctx context.Context, mode StopMode, last time.Duration) {
	for _, step := range []struct {
		signal  syscall.Signal
		context context.Context //nolint:containedctx // the deadline of this step
	}{{syscall.Signal(mode), ctx}, {syscall.Signal(StopImmediate), nil}, {syscall.SIGKILL, nil}} {
		if p.killed.Load() {
			break
		}
		wait := step.context
		if wait == nil {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
		}
		_ = p.process.Signal(step.signal) // it may have ended: then Done tells
		if p.hasEnded(wait, step.signal == syscall.Signal(StopFast)) {
			return
		}
	}
	killing, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
	defer cancel()
	_ = killAll(killing, p.data, endsInKernel) // whoever goes on here looks for processes before
}

// hasEnded waits for the end of the server, until ctx ends or it is killed. Where it stops fast, sessions are let go
// that can't end.
func (p *Process) hasEnded(ctx context.Context, fast bool) bool {
	look, refused := time.NewTicker(letGoInterval), time.NewTicker(refusedInterval)
	defer look.Stop()
	defer refused.Stop()
	var left forgotten
	waiting := lastSessions{directory: p.directory, postmaster: p.process.Pid}
	refuses := refusing{postmaster: p.process.Pid}
	for {
		select {
		case <-p.done:
			return true
		case <-ctx.Done():
			return false
		case <-refused.C:
			if p.killed.Load() {
				return false
			}
			if fast {
				refuses.end()
			}
		case <-look.C:
			if !fast {
				continue
			}
			_ = waiting.letGo() // the server stops later then, or is stopped at once when ctx ends
			if left.waitsForEver(p.process.Pid) {
				return false
			}
		}
	}
}

// refusing are the children of a postmaster that stops which only tell clients that it does.
type refusing struct {
	postmaster int
	// works is a child that does something else, as long as it is there; 0 for none.
	works int
}

// end ends them where they are the last ones: the postmaster waits for them (PM_WAIT_DEAD_END in postmaster.c;
// PostgreSQL 18 ends them by itself), and a client that is slow to hear it, or that says nothing, takes up to
// authentication_timeout. The last checkpoint is written then, and the standbys have it.
func (r *refusing) end() {
	if parent, alive := parentOf(r.works); r.works != 0 && alive && parent == r.postmaster {
		return
	}
	pids, err := children(r.postmaster)
	if err != nil {
		return // the server stops later then
	}
	own := title(r.postmaster)
	for _, pid := range pids {
		if open := sockets(pid); title(pid) != own || !hasClient(open, r.postmaster) {
			r.works = pid
			return
		}
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGTERM) // gone already: as well
	}
}

// fenceGrace is how long a postmaster may take to end its processes itself, in
// order that it can log why and that its shared memory is left clean.
const fenceGrace = 300 * time.Millisecond

// Fence ends the server at once, in whatever state it is: an immediate stop, and
// after fenceGrace whatever works in the data directory is killed until nothing
// is left. Committed data is kept; the next start recovers. An error means that there still are processes,
// because the kernel does not let them go, when ctx ends.
func (p *Process) Fence(ctx context.Context) error {
	if err := p.Kill(ctx, false); err != nil {
		return err
	}
	return p.Gone(ctx)
}

// Kill is the first part of Fence. One that hangs is not waited for: it would end nothing itself. When it returns
// without an error, no process of the server runs its program any more, and so none can answer a client. What is left
// of it is within the kernel, mostly waiting for a disk, and ends before it comes back from there. Until then it may
// still write to the data directory what it had begun to write: see Gone.
func (p *Process) Kill(ctx context.Context, hangs bool) error {
	if !p.fenced.Swap(true) && !hangs { // it has that time once
		_ = p.process.Signal(syscall.SIGQUIT) // it may have ended: then Done tells
		select {
		case <-p.done:
		case <-ctx.Done():
		case <-time.After(fenceGrace):
		}
	}
	p.killed.Store(true)
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

// Crash kills the postmaster, as a crash of it would: its processes notice and end by themselves (PostgreSQL 17
// documentation, 18.5). Nothing here knows of it before.
func (p *Process) Crash() error {
	if err := p.process.Kill(); err != nil {
		return fmt.Errorf("kill the server: %w", err)
	}
	return nil
}

// Hang stops all processes of the server where they are, so that it neither answers nor ends, until Continue.
func (p *Process) Hang() error { return p.signalAll(syscall.SIGSTOP) }

// Continue lets go on what Hang has stopped. What has ended meanwhile stays so.
func (p *Process) Continue() error { return p.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the postmaster first, which alone makes new processes, and then to all that work in the
// data directory.
func (p *Process) signalAll(signal syscall.Signal) error {
	_ = p.process.Signal(signal) // it may have ended
	pids, err := processes(p.data)
	if err != nil {
		return fmt.Errorf("stop or continue the server's processes: %w", err)
	}
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal) // it may have ended
	}
	return nil
}

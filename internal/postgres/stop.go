package postgres

import (
	"context"
	"syscall"
	"time"
)

// letGoInterval is how often a server that stops is looked at, for sessions that can't end.
const letGoInterval = time.Second

// Stop stops the server and waits for it. When ctx ends before it has stopped,
// it is stopped immediately, and then killed.
func (p *Process) Stop(ctx context.Context, mode StopMode) {
	for _, step := range []struct {
		signal  syscall.Signal
		context context.Context //nolint:containedctx // the deadline of this step
	}{{syscall.Signal(mode), ctx}, {syscall.Signal(StopImmediate), nil}, {syscall.SIGKILL, nil}} {
		wait := step.context
		if wait == nil {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
		}
		_ = p.process.Signal(step.signal) // it may have ended: then Done tells
		if p.hasEnded(wait, step.signal == syscall.Signal(StopFast)) {
			return
		}
	}
	<-p.done
}

// hasEnded waits for the end of the server, until ctx ends. Where it stops fast, sessions are let go that can't end.
func (p *Process) hasEnded(ctx context.Context, fast bool) bool {
	look := time.NewTicker(letGoInterval)
	defer look.Stop()
	var left forgotten
	waiting := lastSessions{directory: p.directory, postmaster: p.process.Pid}
	for {
		select {
		case <-p.done:
			return true
		case <-ctx.Done():
			return false
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

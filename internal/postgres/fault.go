package postgres

import (
	"fmt"
	"syscall"
)

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

package postgres

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// receiverInterval is how soon StopReceiving looks again, which holds up a vote; less and less often, up to
// receiverSeldom.
const (
	receiverInterval = time.Millisecond
	receiverSeldom   = 20 * time.Millisecond
)

// StopReceiving ends the WAL receiver, and what brings slots along, and returns when there is neither. What it
// had received is flushed then, and nothing more is received or acknowledged;
// after a Revoke that stays so for the revoked terms, for a receiver that is forked
// later finds no key. A receiver that does not end, because it is stopped or
// waits for its disk, is an error when ctx ends.
func (p *Process) StopReceiving(ctx context.Context) error {
	postmaster := p.process.Pid
	for interval := receiverInterval; ; interval = min(interval*3/2, receiverSeldom) {
		pids, err := children(postmaster)
		if err != nil {
			return fmt.Errorf("stop receiving WAL: %w", err)
		}
		left := receivers(pids, postmaster)
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stop receiving WAL: process %v does not end: %w", left, ctx.Err())
		case <-time.After(interval):
		}
	}
}

// receivers are those of a postmaster's children that receive WAL, or may be
// about to: they are so young that they do not show yet what they are.
// Receivers are told to end.
func receivers(pids []int, postmaster int) []int {
	own := title(postmaster)
	var left []int
	for _, pid := range pids {
		// Its sockets are looked at before its title: a receiver shows its title before it connects.
		open := sockets(pid)
		switch shown := title(pid); {
		case isReceiver(shown) || isSlotSync(shown):
			_ = syscall.Kill(pid, syscall.SIGTERM) // gone already: as well
			left = append(left, pid)
		case shown == own && !hasClient(open, postmaster):
			left = append(left, pid)
		}
	}
	return left
}

// isReceiver reads a title: "postgres: walreceiver …", or with a cluster_name
// "postgres: NAME: walreceiver …" (PostgreSQL 17 source, ps_status.c).
func isReceiver(title string) bool {
	rest, ok := strings.CutPrefix(title, "postgres: ")
	return ok && (strings.HasPrefix(rest, "walreceiver") || strings.Contains(rest, ": walreceiver"))
}

// isSlotSync reads a title in the same way, of what brings slots along from the primary. A promotion waits for its end
// (ShutDownSlotSync in PostgreSQL's slotsync.c). 17.12 heeds that also while it waits for an answer of a primary that
// hangs; nothing rests on every release doing so.
func isSlotSync(title string) bool {
	rest, ok := strings.CutPrefix(title, "postgres: ")
	return ok && (strings.HasPrefix(rest, "slotsync worker") || strings.Contains(rest, ": slotsync worker"))
}

// hasClient says whether a child that has no title yet talks to a client. It
// shows a title only when the client has said who it is, which a mere probe of the port
// never does. The postmaster closes its end of such a socket, while all
// that other children inherit from it are the sockets that it listens on.
func hasClient(open map[string]bool, postmaster int) bool {
	inherited := sockets(postmaster)
	for socket := range open {
		if !inherited[socket] {
			return true
		}
	}
	return false
}

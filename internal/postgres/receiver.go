package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
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

// KillReceiver kills the WAL receiver, and with it ends all else of the server but the postmaster, which begins anew:
// for one that hangs, and so does not end by itself. What it has said to have on disk is there. One that waits for its
// disk gains nothing by that, and goes on when it can.
func (p *Process) KillReceiver() error {
	pids, err := children(p.process.Pid)
	if err != nil {
		return fmt.Errorf("kill the WAL receiver: %w", err)
	}
	for _, pid := range pids {
		if isReceiver(title(pid)) && !waitsForDisk(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already: as well
		}
	}
	return nil
}

// waitsForDisk says that a process sleeps in the kernel, and heeds no signal (state D of proc_pid_stat(5)).
func waitsForDisk(pid int) bool {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return err == nil && len(fields) > 0 && fields[0] == "D"
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

// EndLogins ends the sessions that have not logged in yet and are older than that, and says how many there were. They
// have the pg_hba.conf that was read when they were forked, and get in by it, however late they answer: within
// authentication_timeout, a minute by default. The server's own processes are told from them by notIn, which says which
// of some have not logged in (Session.NotIn). Those that are told to end are there a moment longer.
func (p *Process) EndLogins(older time.Duration, notIn func([]int) ([]int, error)) (n int, err error) {
	postmaster := p.process.Pid
	pids, err := children(postmaster)
	if err != nil {
		return 0, fmt.Errorf("look for who is logging in: %w", err)
	}
	own := title(postmaster)
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		return !isOlder(pid, older) || !mayLogIn(pid, postmaster, own)
	})
	if len(pids) == 0 {
		return 0, nil
	}
	if pids, err = notIn(pids); err != nil { // who has got in since is known now, and no stranger is
		return 0, err
	}
	for _, pid := range pids {
		if parent, alive := parentOf(pid); !alive || parent != postmaster {
			continue
		}
		_ = syscall.Kill(pid, syscall.SIGTERM) // gone already: as well
		n++
	}
	return n, nil
}

// mayLogIn says that a child of the postmaster talks to a client: it shows that, or it shows nothing yet.
func mayLogIn(pid, postmaster int, own string) bool {
	open := sockets(pid) // before the title: see receivers
	shown := title(pid)
	return isClient(shown) || shown == own && hasClient(open, postmaster)
}

// ofClient is how the title of a client's session names where it comes from, with or without what it does behind:
// "postgres: NAME: app shop 10.1.2.3(40312) authentication", or "[local]" (BackendInitialize in PostgreSQL's source).
var ofClient = regexp.MustCompile(`(\(\d+\)|\[local\])( |$)`)

func isClient(title string) bool {
	return strings.HasPrefix(title, "postgres: ") && ofClient.MatchString(title)
}

// ticks is how many there are in a second, for programs, on every machine that Linux and Go run on.
const ticks = 100

// isOlder says that a process has begun longer ago, or that it is not known when.
func isOlder(pid int, than time.Duration) bool {
	var now unix.Timespec
	stat, err := os.ReadFile(procFile(pid, "stat"))
	began, known := begun(string(stat))
	if err := errors.Join(err, unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)); err != nil || !known {
		return true
	}
	return time.Duration(now.Nano())-began >= than
}

// begun is when a process began, since the machine did, by its stat. It is not later than it was: the kernel cuts off
// what is less than a tick (starttime of proc_pid_stat(5)).
func begun(stat string) (at time.Duration, known bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[19], 10, 64)
	return time.Duration(n) * (time.Second / ticks), err == nil
}

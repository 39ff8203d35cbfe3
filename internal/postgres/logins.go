package postgres

import (
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

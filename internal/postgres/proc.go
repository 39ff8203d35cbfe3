package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// allProcesses are the ids of the processes there are. The kernel lists them by
// number, so one that lives all the while is not missed.
func allProcesses() ([]int, error) {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// children are the processes that a process forked and that have not ended.
// One that has ended and waits to be reaped has closed what it had open.
func children(parent int) ([]int, error) {
	all, err := allProcesses()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range all {
		if of, alive := parentOf(pid); alive && of == parent {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// parentOf reads /proc/PID/stat: "pid (comm) state ppid …", where comm may have
// anything in it (proc_pid_stat(5)).
func parentOf(pid int) (parent int, alive bool) {
	text, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil
}

// flagExiting is the kernel's PF_EXITING (include/linux/sched.h), among the flags of proc_pid_stat(5).
const flagExiting = 0x4

// endsInKernel says that a process never runs its program again: it is being taken down already, or it has been killed
// while it waits within the kernel and can't be woken, and ends before it comes back from there. One that has gone does
// so, too. Whatever it has begun there, a write to a disk mostly, may still be done.
func endsInKernel(pid int) bool {
	for file, ends := range map[string]func(string) bool{"stat": isExiting, "status": isKilled} {
		text, err := os.ReadFile(procFile(pid, file))
		gone := errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
		if gone || err == nil && ends(string(text)) {
			return true
		}
	}
	return false
}

// isExiting says of a process's stat that it is being taken down.
func isExiting(stat string) bool {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 32)
	return err == nil && flags&flagExiting != 0
}

// isKilled says of a process's status that it waits within the kernel (D), with a SIGKILL that it has still to take
// (proc_pid_status(5)). One look tells both: whoever has been woken meanwhile has taken it.
func isKilled(status string) bool {
	waits := strings.HasPrefix(statusOf(status, "State"), "D")
	return waits && pendingSignals(status)&(1<<(uint(syscall.SIGKILL)-1)) != 0
}

// pendingSignals are those that a process has still to take, by its status: bit 0 is signal 1.
func pendingSignals(status string) (set uint64) {
	for _, name := range []string{"SigPnd", "ShdPnd"} {
		signals, _ := strconv.ParseUint(statusOf(status, name), 16, 64) // what is not in that form is not known to be
		set |= signals
	}
	return set
}

// statusOf is a value of a process's status, "" where it is not there.
func statusOf(status, name string) string {
	for line := range strings.Lines(status) {
		if key, value, found := strings.Cut(line, ":"); found && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// title is a process's command line as it is shown, which PostgreSQL's
// processes overwrite with what they do.
func title(pid int) string {
	text, err := os.ReadFile(procFile(pid, "cmdline"))
	if err != nil {
		return ""
	}
	return strings.TrimRight(strings.ReplaceAll(string(text), "\x00", " "), " ")
}

// sockets are the sockets that a process has open, as "socket:[inode]".
func sockets(pid int) map[string]bool {
	set := map[string]bool{}
	entries, err := os.ReadDir(procFile(pid, "fd"))
	if err != nil {
		return set
	}
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(procFile(pid, "fd"), entry.Name()))
		if err == nil && strings.HasPrefix(target, "socket:") {
			set[target] = true
		}
	}
	return set
}

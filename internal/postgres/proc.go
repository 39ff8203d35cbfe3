package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// orphanDeadline is how long killed processes may take to vanish: as long as the
// kernel needs to finish their reads and writes.
const orphanDeadline = 10 * time.Second

// clear makes way for a new postmaster where no server of ours runs any more. A killed postmaster may leave sessions
// that compute and do not notice; they would go on writing, and keep the next one from starting. And in a new container
// process ids start anew, so the pid file, or the lock of the Unix socket, may name a stranger, whom PostgreSQL would
// take for a running postmaster: one of the agent's own threads is enough. A pid file of nobody is left: with it
// PostgreSQL itself makes sure that nobody uses the old shared memory.
func (s *Server) clear(ctx context.Context) error {
	if err := s.Data.killOrphans(ctx); err != nil {
		return err
	}
	for _, file := range []string{s.Data.pidFile(), s.socketLock()} {
		pid, err := pidIn(file)
		if err != nil {
			return err
		}
		if pid == 0 || syscall.Kill(pid, 0) != nil {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove what an earlier server has left: %w", err)
		}
	}
	return nil
}

// EndOrphans ends what is left of an earlier server, as Start does too: for who works on its files before. There
// need be no data directory.
func (d DataDirectory) EndOrphans(ctx context.Context) error {
	if _, err := os.Stat(d.Path()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return d.killOrphans(ctx)
}

// killOrphans ends what is left of an earlier server and waits until it is gone.
func (d DataDirectory) killOrphans(ctx context.Context) error {
	data, err := filepath.EvalSymlinks(d.Path())
	if err != nil {
		return fmt.Errorf("look for an earlier server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, orphanDeadline)
	defer cancel()
	if err := killAll(ctx, data, isGone); err != nil {
		return fmt.Errorf("end an earlier server: %w", err)
	}
	return nil
}

// killAll kills the processes that work in a data directory, again and again until all that there are have ended in
// the sense of over, or ctx ends. One that is found by a look has been killed before it is judged by the next: what it
// may have forked before is found by that, too. data is the path as the kernel has it.
func killAll(ctx context.Context, data string, over func(pid int) bool) error {
	killed := map[int]bool{}
	for {
		pids, err := processes(data)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pids, func(pid int) bool { return !killed[pid] || !over(pid) }) {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already: as well
			killed[pid] = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes of the server do not end: %v", pids)
		case <-time.After(pollInterval):
		}
	}
}

// isGone is when a process that is still found has ended: never.
func isGone(int) bool { return false }

// processes are those that work in a data directory, as all of a PostgreSQL
// server do. Ended ones that wait to be reaped do not count. Nothing is read
// from the data directory's disk, which may hang.
func processes(data string) ([]int, error) {
	all, err := allProcesses()
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, pid := range all {
		// An unreadable one is another user's or gone: not of this server. A zombie has no cwd.
		if cwd, err := os.Readlink(procFile(pid, "cwd")); err != nil || cwd != data {
			continue
		}
		if pid != os.Getpid() && isPostgres(pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// isPostgres keeps a shell that somebody opened in the data directory alive.
func isPostgres(pid int) bool {
	name, err := os.ReadFile(procFile(pid, "comm"))
	return err == nil && strings.TrimSpace(string(name)) == "postgres"
}

func (d DataDirectory) pidFile() string { return filepath.Join(d.Path(), "postmaster.pid") }

// socketLock is the file by which a postmaster keeps the socket to itself.
func (s *Server) socketLock() string {
	return filepath.Join(s.Run, fmt.Sprintf(".s.PGSQL.%d.lock", s.Port))
}

// pidIn is the process id in the first line of a lock file, 0 where there is none. That of a server in single-user
// mode, which pg_rewind runs too, is written with a minus there (CreateLockFile in miscinit.c, PostgreSQL 15 to 19):
// kill(2) would take it for a group of processes.
func pidIn(file string) (int, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read what an earlier server has left: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return 0, nil //nolint:nilerr // cut off by a crash: PostgreSQL says so itself
	}
	return max(pid, -pid), nil
}

package postgres

import (
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

// pidIn is the process id in the first line of a lock file, 0 where there is none.
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
	return pid, nil
}

package postgres

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

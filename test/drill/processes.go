package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// process is one on this machine that belongs to a Pod. The handle is the kernel's
// for this very process: it never means another one that got its number later.
type process struct {
	pid    int
	args   []string
	agent  bool // it has id 1 in its Pod's PostgreSQL container
	handle *os.Process
}

// postmaster says whether it is the server's first process: its children have
// titles of their own.
func (p process) postmaster() bool {
	return len(p.args) > 1 && filepath.Base(p.args[0]) == "postgres" && slices.Contains(p.args, "-D")
}

// server says whether it is one of the server's.
func (p process) server() bool {
	return p.postmaster() || len(p.args) > 0 && strings.HasPrefix(p.args[0], "postgres:")
}

// podProcesses finds the processes of a Pod by their cgroup, which has the Pod's UID
// in its name.
func podProcesses(uid string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !inPod(pid, uid) {
			continue
		}
		handle, err := findProcess(pid, func() bool { return inPod(pid, uid) })
		if err != nil {
			continue
		}
		p := process{pid: pid, handle: handle, args: arguments(pid)}
		p.agent = idInside(pid) == 1 && len(p.args) > 1 && p.args[1] == "agent"
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the Pod %s has no process", uid)
	}
	return all, nil
}

// findProcess is the process that has the number and is the one that is meant: one that
// has ended may have left its number to another.
func findProcess(pid int, meant func() bool) (*os.Process, error) {
	handle, err := os.FindProcess(pid)
	if err == nil && !meant() {
		err = errors.New("it has ended")
	}
	if err != nil {
		return nil, fmt.Errorf("find process %d: %w", pid, err)
	}
	return handle, nil
}

// ofLocalkube says whether the arguments are those of one of localkube's processes, such
// as worker0-containerd: that program, with files of that node.
func ofLocalkube(args []string, name string) bool {
	node, program, found := strings.Cut(name, "-")
	if !found || len(args) == 0 || filepath.Base(args[0]) != program {
		return false
	}
	return slices.ContainsFunc(args[1:], func(a string) bool {
		return strings.Contains(a, "/localkube/") && strings.Contains(a, "/"+node+"/")
	})
}

func inPod(pid int, uid string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(text), "/localkube/") && strings.Contains(string(text), "/pod"+uid+"/")
}

func arguments(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

// idInside is the process's id in its innermost namespace.
func idInside(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "NSpid:" {
			id, _ := strconv.Atoi(fields[len(fields)-1]) // the kernel's number
			return id
		}
	}
	return 0
}

// pick are the processes of a Pod of one sort; none is an error.
func pick(uid, what string, which func(process) bool) ([]process, error) {
	all, err := podProcesses(uid)
	if err != nil {
		return nil, err
	}
	picked := slices.DeleteFunc(all, func(p process) bool { return !which(p) })
	if len(picked) == 0 {
		return nil, fmt.Errorf("the Pod has no %s", what)
	}
	// The postmaster first: it could make more children.
	slices.SortStableFunc(picked, func(a, b process) int { return rank(a) - rank(b) })
	return picked, nil
}

func rank(p process) int {
	switch {
	case p.agent:
		return 0
	case p.postmaster():
		return 1
	}
	return 2
}

// send sends all of them a signal. One that has ended is none of our business.
func send(processes []process, s syscall.Signal) error {
	var errs []error
	for _, p := range processes {
		if err := p.handle.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("send %s to process %d: %w", s, p.pid, err))
		}
	}
	return errors.Join(errs...)
}

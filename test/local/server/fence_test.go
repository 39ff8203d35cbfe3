package server_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// servers are the processes of a node.
func (n *node) servers() (pids []int) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		if cwd, _ := os.Readlink(filepath.Join(folder, "cwd")); cwd == n.Data.Path() {
			pid, _ := strconv.Atoi(filepath.Base(folder))
			pids = append(pids, pid)
		}
	}
	return pids
}

func (n *node) postmaster() int {
	n.Helper()
	text, err := os.ReadFile(filepath.Join(n.Data.Path(), "postmaster.pid"))
	must(n, err)
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	must(n, err)
	return pid
}

func TestFenceEndsAServerInWhateverStateItIs(t *testing.T) {
	n := nodes(t, 1)[0]
	n.found()
	for name, freeze := range map[string]func(pid int) bool{
		"running":                   func(int) bool { return false },
		"everything is stopped":     func(int) bool { return true },
		"only the postmaster is":    func(pid int) bool { return pid == n.postmaster() },
		"only its children are":     func(pid int) bool { return pid != n.postmaster() },
		"the postmaster was killed": func(pid int) bool { return pid != n.postmaster() },
	} {
		t.Run(name, func(t *testing.T) {
			if n.process == nil {
				n.lead("")
			}
			busy := n.dial()
			defer busy.Close(context.Background())
			go func() { _, _ = busy.Exec(t.Context(), "select count(*) from generate_series(1, 1000000000)") }()
			for _, pid := range n.servers() {
				if freeze(pid) {
					must(t, syscall.Kill(pid, syscall.SIGSTOP))
				}
			}
			if strings.Contains(name, "killed") {
				must(t, syscall.Kill(n.postmaster(), syscall.SIGKILL))
			}
			begin := time.Now()
			must(t, n.process.Fence(within(t, deadline)))
			t.Logf("took %v", time.Since(begin))
			if left := n.servers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			n.process = nil
		})
	}
	n.lead("") // what it left can be started again
}

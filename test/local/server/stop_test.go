package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/postgres"
)

// titled is the process of a node with such a title, 0 for none.
func (n *node) titled(title string) int {
	for _, pid := range n.servers() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && bytes.Contains(text, []byte(": "+title)) {
			return pid
		}
	}
	return 0
}

// status is a line of a process's status (proc_pid_status(5)), "" where it has none, or where the process is gone.
func status(pid int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // without one there is no line either
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// hold stops a process, and says that it has stopped: not where it ends. Until it has stopped, it would take a later
// signal first that has a handler and a lower number.
func (n *node) hold(pid int) bool {
	if syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return false
	}
	state := ""
	n.eventually("a process is held or gone", func() bool {
		state, _, _ = strings.Cut(status(pid, "State"), " ")
		return state == "T" || state == "Z" || state == ""
	})
	return state == "T"
}

// A client that connects while the server stops, and says nothing, is refused by a process of its own, which waits for
// authentication_timeout to hear whom it refuses. The stop does not wait for it.
func TestAStopDoesNotWaitForClientsThatAreRefused(t *testing.T) {
	n := nodes(t, 1)[0]
	n.found()
	checkpointer := n.titled("checkpointer")
	must(t, syscall.Kill(checkpointer, syscall.SIGSTOP))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.process.Stop(context.Background(), postgres.StopFast)
	}()
	n.eventually("it refuses clients", func() bool {
		_, err := n.Connect(t.Context())
		return err != nil && strings.Contains(err.Error(), "shutting down")
	})
	for range 3 {
		silent, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(n.Listen, strconv.Itoa(n.Port)))
		must(t, err)
		defer silent.Close()
	}
	n.eventually("only the postmaster, the checkpointer and these are left", func() bool {
		return len(n.servers()) == 5
	})
	must(t, syscall.Kill(checkpointer, syscall.SIGCONT))
	began := time.Now()
	<-ended
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it stopped after %s", took)
	}
	if control, err := n.Control(t.Context()); err != nil || control.State != "shut down" {
		t.Errorf("it is %q, %v", control.State, err)
	}
}

// A server that recovers from the crash of one of its processes, and is told to stop fast, stops. Its postmaster waits
// for a checkpointer then that it has not told to end.
func TestAStopDuringTheRecoveryFromACrash(t *testing.T) {
	n := nodes(t, 1)[0]
	n.found()
	n.do("create table kept as select generate_series(1, 200000) as id")
	recovers := 0
	n.eventually("it recovers", func() bool {
		if writer := n.titled("walwriter"); writer != 0 {
			must(t, syscall.Kill(writer, syscall.SIGKILL))
		}
		for end := time.Now().Add(time.Second); recovers == 0 && time.Now().Before(end); {
			recovers = n.titled("startup")
		}
		if recovers != 0 && !n.hold(recovers) {
			recovers = 0 // it was faster
		}
		return recovers != 0
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.process.Stop(context.Background(), postgres.StopFast)
	}()
	n.eventually("the process that recovers is told to end", func() bool {
		pending, err := strconv.ParseUint(status(recovers, "ShdPnd"), 16, 64)
		return err == nil && pending&(1<<(syscall.SIGTERM-1)) != 0
	})
	must(t, syscall.Kill(recovers, syscall.SIGCONT))
	select {
	case <-ended:
	case <-time.After(deadline):
		t.Fatal("it does not stop")
	}
	n.process = nil
	n.lead("")
	if rows := n.ask("select count(*) from kept"); rows != "200000" {
		t.Errorf("there are %s rows", rows)
	}
}

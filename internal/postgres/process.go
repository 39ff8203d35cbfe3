package postgres

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a running postmaster. It dies with the program that started it.
type Process struct {
	server   *Server
	cmd      *exec.Cmd
	data     string // the data directory as the kernel has it, without symbolic links
	messages *logTail
	done     chan struct{}
	err      error
	fenced   atomic.Bool // its end at once has begun
}

// StopMode is how a server is stopped (PostgreSQL 17 documentation, 18.5).
type StopMode syscall.Signal

// The stop modes that are used here. Smart is not one: it lets open sessions go on.
const (
	// StopFast ends the sessions, writes a checkpoint and stops.
	StopFast = StopMode(syscall.SIGINT)
	// StopImmediate stops at once; the next start recovers from the WAL.
	StopImmediate = StopMode(syscall.SIGQUIT)
)

// logDelay is how long the last words of a postmaster that has ended are waited for.
const logDelay = 50 * time.Millisecond

// pollInterval is how often the pid file is looked at while the server starts.
const pollInterval = 10 * time.Millisecond

// Start starts the server as it is configured and returns at once; what is left
// of an earlier one is ended before. Its log goes to log. See Ready for when it
// answers. The caller has no other process of this server running.
func (s *Server) Start(ctx context.Context, log io.Writer) (*Process, error) {
	if incomplete, err := s.Incomplete(); err != nil {
		return nil, err
	} else if incomplete {
		return nil, errIncomplete
	}
	if err := s.clear(ctx); err != nil {
		return nil, err
	}
	data, err := filepath.EvalSymlinks(s.Data())
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := &Process{server: s, data: data, messages: &logTail{}, done: make(chan struct{})}
	p.cmd = s.Programs.command(context.Background(), "postgres", "-D", s.Data())
	p.cmd.Stdout = log
	p.cmd.Stderr = io.MultiWriter(log, p.messages)
	// A session that outlives its postmaster holds the log open: that must not hide
	// the postmaster's end.
	p.cmd.WaitDelay = logDelay
	// If the agent dies, its postmaster must not go on alone: an immediate stop.
	// A group of its own keeps a terminal's Ctrl-C from reaching it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	return p, nil
}

// run starts and waits on one locked thread, because the kernel sends the death
// signal when the thread that forked ends, not the process (prctl(2)).
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := Children.Start(p.cmd)
	started <- err
	if err != nil {
		return
	}
	p.err = Children.Wait(p.cmd)
	close(p.done)
}

// Done is closed when the postmaster has ended. Then Err says how.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is why the postmaster ended, in its own last words. Only after Done.
func (p *Process) Err() error {
	words := p.messages.rejection()
	if p.err == nil {
		return fmt.Errorf("the server has stopped: %s", words)
	}
	return fmt.Errorf("the server has ended (%w): %s", p.err, words)
}

// Ready waits until the server takes connections (as a standby: read-only ones).
// It fails when the server ends before, or with ctx.
func (p *Process) Ready(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the server to start: %w", ctx.Err())
		case <-p.done:
			return p.Err()
		case <-ticker.C:
			if p.server.pidFileState(p.cmd.Process.Pid) == "ready" {
				return nil
			}
		}
	}
}

// pidFileState is the eighth line of the postmaster's pid file: starting,
// stopping, ready, or standby, which with hot_standby on is never reached
// (PostgreSQL 17 source, src/include/utils/pidfile.h). The file of an earlier
// postmaster says nothing.
func (s *Server) pidFileState(pid int) string {
	text, err := os.ReadFile(s.pidFile())
	if err != nil {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(pid) {
		return ""
	}
	return strings.TrimSpace(lines[7])
}

// Stop stops the server and waits for it. When ctx ends before it has stopped,
// it is stopped immediately, and then killed.
func (p *Process) Stop(ctx context.Context, mode StopMode) {
	for _, step := range []struct {
		signal  syscall.Signal
		context context.Context //nolint:containedctx // the deadline of this step
	}{{syscall.Signal(mode), ctx}, {syscall.Signal(StopImmediate), nil}, {syscall.SIGKILL, nil}} {
		wait := step.context
		if wait == nil {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
		}
		_ = p.cmd.Process.Signal(step.signal) // it may have ended: then Done tells
		select {
		case <-p.done:
			return
		case <-wait.Done():
		}
	}
	<-p.done
}

// Reload makes the server read its configuration files again.
func (p *Process) Reload() error {
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("tell the server to reload: %w", err)
	}
	return nil
}

// logTail keeps the last lines of a log.
type logTail struct{ lines []string }

const tailLines = 20

// Write takes what os/exec copies; it is called by one goroutine.
func (t *logTail) Write(p []byte) (int, error) {
	scanner := bufio.NewScanner(strings.NewReader(string(p)))
	for scanner.Scan() {
		t.lines = append(t.lines, scanner.Text())
	}
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	return len(p), nil
}

func (t *logTail) rejection() string { return lastWords(t.lines) }

// culprit is how the postmaster names the process that it stops for.
var culprit = regexp.MustCompile(`\(PID (\d+)\) (?:exited|was terminated)`)

// lastWords are the last fatal message of a server, or its last line. Where the postmaster names a process that it
// stops for, they are that one's: others may fail of the same cause, and say less of it.
func lastWords(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if named := culprit.FindStringSubmatch(lines[i]); named != nil {
			if _, words := lastFatal(lines[:i], "["+named[1]+"]"); words != "" {
				return words
			}
		}
	}
	if at, words := lastFatal(lines, ""); words != "" {
		return words + cause(lines[:at])
	}
	for _, line := range slices.Backward(lines) {
		// A postmaster that can't write one of its own files ends with no fatal message (CreateOptsFile).
		if _, text, ok := strings.Cut(line, "LOG:"); ok && strings.Contains(text, "could not write file") {
			return strings.TrimSpace(text)
		}
	}
	if len(lines) == 0 {
		return "it said nothing"
	}
	return lines[len(lines)-1]
}

// lastFatal is the last fatal message in lines that contain something, and which line it is; "" if there is none.
func lastFatal(lines []string, of string) (at int, words string) {
	for i := len(lines) - 1; i >= 0; i-- {
		if !strings.Contains(lines[i], of) {
			continue
		}
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(lines[i], level); ok {
				return i, strings.TrimSpace(text)
			}
		}
	}
	return 0, ""
}

// cause is the message before a fatal one, which often has the detail.
func cause(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	_, text, ok := strings.Cut(lines[len(lines)-1], "LOG:")
	if !ok || strings.Contains(text, "starting PostgreSQL") || strings.Contains(text, "listening on") {
		return ""
	}
	return " (" + strings.TrimSpace(text) + ")"
}

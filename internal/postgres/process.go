package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a running postmaster. It dies with the process that started it.
type Process struct {
	directory DataDirectory
	process   *os.Process
	data      string // the data directory as the kernel has it, without symbolic links
	log       *serverLog
	messages  *logTail
	done      chan struct{}
	err       error
	fenced    atomic.Bool // its end at once has begun
	killed    atomic.Bool // its end at once waits no longer: neither does a stop in order
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
	data, err := filepath.EvalSymlinks(s.Data.Path())
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	defer write.Close()
	cmd := s.Programs.command(context.Background(), "postgres", "-D", s.Data.Path())
	cmd.Stdout, cmd.Stderr = write, write
	// If the agent dies, its postmaster must not go on alone: an immediate stop.
	// A group of its own keeps a terminal's Ctrl-C from reaching it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	PostmastersParent.Do(func() { err = Children.Start(cmd) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres: %w", err), read.Close())
	}
	p := s.Data.attend(cmd.Process, data, read, log)
	go p.await(func() error { return Children.Wait(cmd) })
	return p, nil
}

// attend is a postmaster that runs, whose log is read from now on.
func (d DataDirectory) attend(process *os.Process, data string, read *os.File, log io.Writer) *Process {
	p := &Process{directory: d, process: process, data: data, messages: &logTail{}, done: make(chan struct{})}
	p.log = &serverLog{read: read, to: io.MultiWriter(log, p.messages)}
	p.log.begin()
	return p
}

// await waits for the end of the postmaster.
func (p *Process) await(wait func() error) {
	p.err = wait()
	p.log.end()
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

// MissingTablespace is the folder of a tablespace for which a server has ended that was to replay how it was made, ""
// where it ended for another reason. PostgreSQL makes no such folder itself (create_tablespace_directories in its
// tablespace.c, PostgreSQL 15 to 19). Only after Done.
func (p *Process) MissingTablespace() string { return missingTablespace(p.messages.lines) }

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
			if p.directory.pidFileState(p.process.Pid) == "ready" {
				return nil
			}
		}
	}
}

// pidFileState is the eighth line of the postmaster's pid file: starting,
// stopping, ready, or standby, which with hot_standby on is never reached
// (PostgreSQL 17 source, src/include/utils/pidfile.h). The file of an earlier
// postmaster says nothing.
func (d DataDirectory) pidFileState(pid int) string {
	text, err := os.ReadFile(d.pidFile())
	if err != nil {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(pid) {
		return ""
	}
	return strings.TrimSpace(lines[7])
}

// Reload makes the server read its configuration files again.
func (p *Process) Reload() error {
	if err := p.process.Signal(syscall.SIGHUP); err != nil {
		return fmt.Errorf("tell the server to reload: %w", err)
	}
	return nil
}

// osUserName is the operating system's user that the server runs as. PostgreSQL
// needs it in the image's passwd file, and so does peer authentication.
func osUserName() (string, error) {
	current, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("the user that this container runs as has no entry in its passwd file: %w", err)
	}
	return current.Username, nil
}

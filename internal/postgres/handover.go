package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Handed is a postmaster that runs, as a program tells it to the one that takes its process over (execve(2)).
type Handed struct {
	PID int `json:"pid"`
	// Started is when it was started, as the kernel counts: another process may get the same id.
	Started string `json:"started"`
	// Data is its data directory, as the kernel has it.
	Data string `json:"data"`
	// Log is the descriptor of the pipe with its log.
	Log int `json:"log"`
}

// errEnded says that a postmaster has ended.
var errEnded = errors.New("the server has ended")

// HandOver tells what the next program has to know of the postmaster, and stops reading its log, whose descriptor stays
// open for that program. If there is none in the end, resume goes on.
func (p *Process) HandOver() (h Handed, resume func(), err error) {
	select {
	case <-p.done:
		return h, nil, errEnded
	default:
	}
	if h.Started = startOf(p.process.Pid); h.Started == "" {
		return h, nil, errEnded
	}
	if err := p.log.pause(); err != nil {
		return h, nil, err
	}
	if h.Log, err = Inherit(p.log.read, true); err != nil {
		p.log.resume()
		return h, nil, err
	}
	h.PID, h.Data = p.process.Pid, p.data
	return h, func() {
		_, _ = Inherit(p.log.read, false) // a server that has it open too does no harm
		p.log.resume()
	}, nil
}

// Inherit says whether the programs that take this process over, or are started by it, inherit a file, and tells its
// descriptor. The file stays as it is otherwise: File.Fd would make it a blocking one.
func Inherit(file syscall.Conn, inherits bool) (descriptor int, err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("pass a file on: %w", err)
	}
	flags := unix.FD_CLOEXEC
	if inherits {
		flags = 0
	}
	controlled := raw.Control(func(fd uintptr) {
		descriptor = int(fd)
		_, err = unix.FcntlInt(fd, unix.F_SETFD, flags)
	})
	if err := errors.Join(controlled, err); err != nil {
		return 0, fmt.Errorf("pass a file on: %w", err)
	}
	return descriptor, nil
}

// TakeOver takes over a postmaster that the program before has handed over. It must be a child of this process, started
// when that program said, and work in the data directory.
func (s *Server) TakeOver(h Handed, log io.Writer) (*Process, error) {
	data, err := filepath.EvalSymlinks(s.Data.Path())
	if err != nil {
		return nil, fmt.Errorf("take the server over: %w", err)
	}
	if err := isOurs(h, data); err != nil {
		return nil, fmt.Errorf("take the server over: %w", err)
	}
	process, err := os.FindProcess(h.PID)
	if err != nil {
		return nil, fmt.Errorf("take the server over: %w", err)
	}
	unix.CloseOnExec(h.Log)
	p := s.Data.attend(process, data, os.NewFile(uintptr(h.Log), "log"), log)
	Children.Adopt(h.PID)
	go p.await(func() error {
		defer Children.Forget(h.PID)
		state, err := process.Wait()
		if err != nil {
			return fmt.Errorf("wait for the server: %w", err)
		}
		if !state.Success() {
			return errors.New(state.String())
		}
		return nil
	})
	return p, nil
}

// isOurs says whether a process is the postmaster that was handed over.
func isOurs(h Handed, data string) error {
	parent, alive := parentOf(h.PID)
	cwd, err := os.Readlink(procFile(h.PID, "cwd"))
	switch {
	case !alive || parent != os.Getpid() || startOf(h.PID) != h.Started:
		return errEnded
	case err != nil || cwd != data || !isPostgres(h.PID):
		return fmt.Errorf("process %d is no server of the data in %s", h.PID, data)
	}
	return nil
}

// startOf is when a process was started, in the kernel's ticks since it was booted, "" if there is none (proc(5),
// /proc/pid/stat).
func startOf(pid int) string {
	text, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// EndHanded ends a server that another process has started, at once, as Process.Kill does. It reads nothing on the
// volume, which may hang.
func EndHanded(ctx context.Context, h Handed) error {
	if startOf(h.PID) == h.Started {
		_ = syscall.Kill(h.PID, syscall.SIGQUIT) // gone already: as well
	}
	for end := time.Now().Add(fenceGrace); time.Now().Before(end) && startOf(h.PID) == h.Started; {
		if _, alive := parentOf(h.PID); !alive {
			break
		}
		time.Sleep(pollInterval)
	}
	if err := killAll(ctx, h.Data, endsInKernel); err != nil {
		return fmt.Errorf("fence the server: %w", err)
	}
	return nil
}

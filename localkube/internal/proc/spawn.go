package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// SpawnCommand is the hidden first argument by which this program runs itself
// to become another: see Spawned.
const SpawnCommand = "spawn"

// The file descriptors that a spawned process inherits beside the usual three.
const (
	specFD  = 3 // its Spec as JSON
	errorFD = 4 // what went wrong; closed without a word once the program runs
	lockFD  = 5 // see Table.Lock; closed once the program runs
)

// A Spec says what to run, and where.
type Spec struct {
	Name    string   `json:"name"`
	Args    []string `json:"args"` // Args[0] is the program's path
	Env     []string `json:"env"`
	Log     string   `json:"log"`
	Netns   string   `json:"netns,omitempty"`   // file of the network namespace to enter
	Cgroups []string `json:"cgroups,omitempty"` // directories of the cgroups to join
}

// A Record is what is kept of a process: enough to end it, and to start it again.
type Record struct {
	Spec
	Identity
}

// Spawned is the first half of a process's life. The new process writes its
// own record, enters its cgroups and its network namespace, and only then
// becomes the program, keeping pid and start time: so nothing ever runs that
// is not recorded, even if whoever started it is killed meanwhile. It returns
// only if that failed.
func Spawned() {
	// A network namespace is entered by a thread, and exec keeps that of the
	// thread that called it.
	runtime.LockOSThread()
	report := os.NewFile(errorFD, "error")
	unix.CloseOnExec(errorFD)
	unix.CloseOnExec(lockFD) // if there is none, nothing happens
	if err := become(os.NewFile(specFD, "spec")); err != nil {
		fmt.Fprint(report, err)
		os.Exit(1)
	}
}

func become(source *os.File) error {
	var request struct {
		Spec
		Record string
	}
	if err := json.NewDecoder(source).Decode(&request); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	_ = source.Close() // it has been read
	identity, err := Identify(os.Getpid())
	if err != nil {
		return err
	}
	if err := writeRecord(request.Record, Record{request.Spec, identity}); err != nil {
		return err
	}
	if err := JoinCgroups(request.Cgroups); err != nil {
		return err
	}
	if err := EnterNetns(request.Netns); err != nil {
		return err
	}
	if err := unix.Exec(request.Args[0], request.Args, request.Env); err != nil {
		return fmt.Errorf("run %s: %w", request.Args[0], err)
	}
	return nil
}

// JoinCgroups moves this process to the cgroups with these directories.
func JoinCgroups(dirs []string) error {
	for _, dir := range dirs {
		pid := []byte(strconv.Itoa(os.Getpid()))
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0o600); err != nil {
			return fmt.Errorf("join the cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// EnterNetns moves this thread to the network namespace that file holds.
func EnterNetns(file string) error {
	if file == "" {
		return nil
	}
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the network namespace %s: %w", file, err)
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace %s: %w", file, err)
	}
	return nil
}

func writeRecord(path string, record Record) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("record the process: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("record the process: %w", err)
	}
	return nil
}

// awaitExec returns once the spawned process is the program it should be, or
// ctx is done.
func awaitExec(ctx context.Context, report *os.File, name string) error {
	stop := context.AfterFunc(ctx, func() {
		_ = report.SetReadDeadline(time.Now()) // ends the read below
	})
	defer stop()
	message, err := io.ReadAll(report)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if len(message) > 0 {
		return fmt.Errorf("start %s: %s", name, message)
	}
	return nil
}

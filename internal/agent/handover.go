package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// handoverFormat is that of the handover that this release writes. It reads no other one. A rehearsal is told of it.
const handoverFormat = 1

// The environment of a program that takes a process over, and of one that rehearses that.
const (
	// envHandover names the file with the handover.
	envHandover = "TOBAN_HANDOVER"
	// envFailed has the failure (protocol.ProgramFailure) of the program that the process is taken back from.
	envFailed = "TOBAN_HANDOVER_FAILED"
	// noGarbage has a program collect no garbage until it has begun: that would take both processors of a small machine
	// in the moment in which it has to begin.
	envGarbage = "GOGC"
	noGarbage  = envGarbage + "=off"
	// EnvFormat is the handover's format, for a rehearsal.
	EnvFormat = "TOBAN_HANDOVER_FORMAT"
)

// handoverFile lies in the folder in memory.
const handoverFile = "handover.json"

// handover is what a program tells the one that takes its process over (docs/agentupdate.md, "An agent is replaced in
// place").
type handover struct {
	Format int `json:"format"`
	// Former is where the program lies that hands over, Program the hash of the one that takes over.
	Former  string `json:"former"`
	Program string `json:"program"`
	// Began is when the machine's time begins, by the kernel's monotonic clock, which all processes share.
	Began time.Duration `json:"began"`
	// Programs are PostgreSQL's, which are looked for when the container starts.
	Programs postgres.Programs `json:"programs"`
	// Lock, Listeners and Guard are open files, by their descriptors.
	Lock      [2]int         `json:"lock"`
	Listeners map[string]int `json:"listeners"`
	Guard     int            `json:"guard,omitempty"`
	running.Handed
	Config protocol.Config `json:"config"`
	Status protocol.Status `json:"status"`
}

// monotonic is the kernel's clock that does not jump and that all processes share.
func monotonic() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// timeOf is a moment of that clock as this process measures it.
func timeOf(moment time.Duration) (time.Time, error) {
	now, err := monotonic()
	return time.Now().Add(moment - now), err
}

// write writes the handover into the folder in memory.
func (h *handover) write(run string) (path string, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode the handover: %w", err)
	}
	path = filepath.Join(run, handoverFile)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("write the handover: %w", err)
	}
	return path, nil
}

// taking is a process that is being taken over.
type taking struct {
	handover
	path string
	// failed is why the program before could not go on, nil unless this one takes the process back from it.
	failed *protocol.ProgramFailure
	mutex  sync.Mutex
	begun  bool
	opened map[string]*os.File // the listeners that are in use, as they were handed over
}

// takeProcess reads what the program before has handed over; nil where none has. Programs that are started from now on
// inherit none of its files but the lock that they are to have.
func takeProcess() (*taking, error) {
	path := os.Getenv(envHandover)
	if path == "" {
		return nil, nil //nolint:nilnil // there mostly is none
	}
	t := &taking{path: path, opened: map[string]*os.File{}}
	if failed := os.Getenv(envFailed); failed != "" {
		t.failed = &protocol.ProgramFailure{}
		if err := json.Unmarshal([]byte(failed), t.failed); err != nil {
			t.failed.Message = failed
		}
	}
	_ = errors.Join(os.Unsetenv(envHandover), os.Unsetenv(envFailed), os.Unsetenv(envGarbage)) // they can be
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the handover: %w", err)
	}
	if err := json.Unmarshal(text, &t.handover); err != nil {
		return nil, fmt.Errorf("understand the handover: %w", err)
	}
	if t.Format != handoverFormat {
		return nil, fmt.Errorf("understand the handover: it has the format %d, and this program knows %d",
			t.Format, handoverFormat)
	}
	t.inherited(true)
	return t, nil
}

// inherited says whether programs that are started do not inherit what was handed over.
func (t *taking) inherited(closes bool) {
	files := []int{t.Lock[0]}
	for _, fd := range t.Listeners {
		files = append(files, fd)
	}
	for _, fd := range append(files, t.Guard, t.Postmaster.Log) {
		if fd > 2 {
			flags := 0
			if closes {
				flags = unix.FD_CLOEXEC
			}
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags) // an open one can be told
		}
	}
}

// giveBackAfter is how long a program that has taken a process over may take before it takes part in elections.
const giveBackAfter = 5 * time.Second

// giveBackLater gives the process back to the program before, unless this one has begun by then.
func (t *taking) giveBackLater() {
	time.AfterFunc(giveBackAfter, func() {
		postgres.PostmastersParent.Do(func() {
			t.mutex.Lock()
			defer t.mutex.Unlock()
			if t.begun || t.failed != nil {
				return
			}
			t.giveBack()
		})
	})
}

// giveBack gives the process back. It returns only if that is impossible.
func (t *taking) giveBack() {
	text, err := json.Marshal(protocol.ProgramFailure{
		SHA256: t.Program, Message: "it did not take part in elections within " + giveBackAfter.String(),
	})
	if err != nil {
		return // strings can be encoded
	}
	t.inherited(false)
	_ = execAs(t.Former, append(os.Environ(), envHandover+"="+t.path, envFailed+"="+string(text), noGarbage))
	t.inherited(true)
}

// hasBegun notes that this program takes part in elections: from now on what was handed over is of the past.
func (t *taking) hasBegun() {
	t.mutex.Lock()
	t.begun = true
	for _, file := range t.opened {
		_ = file.Close() // a duplicate is in use
	}
	t.mutex.Unlock()
	if t.Guard > 0 {
		_, _ = syscall.Write(t.Guard, []byte{1}) // one that has ended needs no word
		_ = syscall.Close(t.Guard)
	}
	_ = os.Remove(t.path) // in memory
	debug.SetGCPercent(100)
}

// takeListener is the listener at an address that was handed over, nil where none was. The file that was handed over
// stays open for as long as the process may be given back.
func (t *taking) takeListener(address string) (net.Listener, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.Listeners[address] == 0 || t.opened[address] != nil {
		return nil, nil //nolint:nilnil // then it is made
	}
	file := os.NewFile(uintptr(t.Listeners[address]), address)
	t.opened[address] = file
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("take the listener at %s over: %w", address, err)
	}
	if t.begun {
		_ = file.Close() // a duplicate is in use
	}
	return listener, nil
}

// execAs gives the process to a program, with the arguments of this one. It is called by the thread that has started
// the postmaster, and returns only if it fails.
func execAs(path string, env []string) error {
	err := syscall.Exec(path, os.Args, env) //nolint:gosec // the arguments are those that this program was run with
	return fmt.Errorf("run %s: %w", path, err)
}

// takeVolume takes the lock over, and reads the hard state.
func (t *taking) takeVolume(o Options) (*volume.Lock, *volume.StateStore, error) {
	return volume.TakeOver(o.Volume, o.Name, t.Lock) //nolint:wrapcheck // it says what
}

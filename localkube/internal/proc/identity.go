// Package proc starts programs that outlive the command that started them, and
// later finds, signals and ends exactly those. It keeps a record per process
// on disk; there is no supervisor.
//
// A process is known by its pid together with its start time and the boot it
// was started in: the number alone may belong to somebody else by the time it
// is read back.
package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// An Identity names one process for all time.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot: field 22 of /proc/PID/stat
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown" // the same for every record, so start times decide
	}
	return strings.TrimSpace(string(id))
})

// Identify returns who pid is now.
func Identify(pid int) (Identity, error) {
	s, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, Start: s.start, Boot: bootID()}, nil
}

// Alive reports whether this very process still runs. A zombie does not: it
// has ended, and only its parent has not looked yet.
func (id Identity) Alive() bool {
	if id.PID <= 0 || id.Boot != bootID() {
		return false
	}
	s, err := readStat(id.PID)
	return err == nil && s.start == id.Start && s.state != 'Z' && s.state != 'X'
}

// Signal sends sig to this very process, or does nothing if it has ended. The
// pidfd is opened before the identity is compared, so that what is compared is
// what gets the signal.
func (id Identity) Signal(sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", id.PID, err)
	}
	defer unix.Close(fd)
	if !id.Alive() {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", unix.SignalName(sig), id.PID, err)
	}
	return nil
}

type stat struct {
	state byte
	start uint64
}

func readStat(pid int) (stat, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return parseStat(string(line))
}

// parseStat reads proc_pid_stat(5). The second field is the program's name in
// brackets and may itself hold spaces and brackets, so fields are counted from
// the last bracket on.
func parseStat(line string) (stat, error) {
	bracket := strings.LastIndexByte(line, ')')
	if bracket < 0 {
		return stat{}, fmt.Errorf("not a line of /proc/PID/stat: %q", line)
	}
	fields := strings.Fields(line[bracket+1:]) // fields[0] is the third: the state
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("a line of /proc/PID/stat that is too short: %q", line)
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("the start time in /proc/PID/stat: %w", err)
	}
	return stat{state: fields[0][0], start: start}, nil
}

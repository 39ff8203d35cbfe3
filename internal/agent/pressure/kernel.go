package pressure

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// The kernel's own words: for how long some task has waited for a processor (Documentation/accounting/psi.rst), and for
// how long the container was held to its limit (cgroup-v2.rst "cpu.stat"; with cgroups of version 1 in nanoseconds).
// The container's own pressure comes first, which cgroups of version 1 do not have.
var pressureFiles = []string{"/sys/fs/cgroup/cpu.pressure", "/proc/pressure/cpu"}

var throttledFiles = []string{
	"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat",
}

// stall is for how long, in all, tasks have waited for a processor, and the container was held to its limit.
type stall struct{ waited, held time.Duration }

// since is the longer one of the time since an earlier moment, not of all time.
func (s stall) since(before stall) time.Duration {
	return max(s.waited-before.waited, s.held-before.held)
}

// kernelStalls is what the kernel says, where it says anything.
func kernelStalls() func() stall {
	pressure, throttled := first(pressureFiles), first(throttledFiles)
	var last stall
	return func() stall {
		// They only grow: less is a file that could not be read.
		last = stall{max(last.waited, waitedIn(read(pressure))), max(last.held, throttledIn(read(throttled)))}
		return last
	}
}

// first is the first of some files that is there, "" for none.
func first(files []string) string {
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// read is a file, empty where it can't be read: what the kernel does not say is not known.
func read(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// waitedIn reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345", in microseconds.
func waitedIn(text []byte) time.Duration {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	_, total, found := bytes.Cut(line, []byte("total="))
	if !found {
		return 0
	}
	return parse(total, time.Microsecond)
}

// throttledIn reads "throttled_usec 12345", or "throttled_time 12345000".
func throttledIn(text []byte) time.Duration {
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		switch string(name) {
		case "throttled_usec":
			return parse(value, time.Microsecond)
		case "throttled_time":
			return parse(value, time.Nanosecond)
		}
	}
	return 0
}

func parse(text []byte, unit time.Duration) time.Duration {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * unit
}

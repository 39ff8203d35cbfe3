package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measured names the folder for what packages have used. Where it is set, this program is the one that go test runs a
// package's tests with (go help testflag, -exec).
const measured = "GOTEST_MEASURED"

// measure runs a package's tests, and notes the processor time that they and all that they have started have used.
func measure(args []string, folder string) (code int, err error) {
	if err := os.Unsetenv(measured); err != nil {
		return 0, err
	}
	// What a test's program leaves behind, for example the server of an agent that was killed, ends as a child of ours.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become the parent of orphans: %w", err)
	}
	if code, err = runTests(args); err != nil {
		return 0, err
	}
	at, err := os.Getwd()
	if err != nil {
		return 0, err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0, fmt.Errorf("ask how much processor time was used: %w", err)
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	file, err := os.CreateTemp(folder, "")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(file, "%f %s", used.Seconds(), at)
	return code, errors.Join(err, file.Close())
}

// runTests runs a program and reaps whatever becomes our child meanwhile.
func runTests(args []string) (code int, err error) {
	runtime.LockOSThread() // the program ends with the thread that has started it
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT) // go test sends the last at a timeout
	process, err := os.StartProcess(args[0], args, &os.ProcAttr{           // #nosec G702 -- what go test has built
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = process.Signal(s)
		}
	}()
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the tests: %w", err)
		case ended != process.Pid:
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}

// used is the processor time of a package's tests.
type used struct {
	folder  string
	seconds float64
}

// readMeasured reads what packages have used, the most first.
func readMeasured(folder string) (all []used, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		number, at, _ := strings.Cut(string(text), " ")
		seconds, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, used{at, seconds})
	}
	slices.SortFunc(all, func(a, b used) int { return cmp.Compare(b.seconds, a.seconds) })
	return all, nil
}

// tellUsed prints which packages have used most processor time, and how much all have, with what go needed to build
// them.
func tellUsed(out io.Writer, all []used, whole time.Duration) {
	tests, here := 0.0, ""
	if at, err := os.Getwd(); err == nil {
		here = at + "/"
	}
	for i, p := range all {
		tests += p.seconds
		if i < slowest && p.seconds >= slow {
			fmt.Fprintf(out, "%6.0f s of a processor  %s\n", p.seconds, strings.TrimPrefix(p.folder, here))
		}
	}
	if whole.Seconds() >= slow {
		fmt.Fprintf(out, "%6.0f s of a processor, in all: the tests %.0f s, to build them %.0f s\n",
			whole.Seconds(), tests, whole.Seconds()-tests)
	}
}

// withMeasure has go test run the tests of each package with this program.
func withMeasure(cmd *exec.Cmd, folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), measured+"="+folder)
	at := slices.Index(cmd.Args, "-json")
	cmd.Args = slices.Insert(cmd.Args, at, "-exec", "'"+self+"'")
	return nil
}

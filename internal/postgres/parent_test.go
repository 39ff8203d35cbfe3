package postgres

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// envExec has this test's own program do a part of TestWhatStaysThroughExec.
const envExec = "TOBAN_TEST_EXEC"

func init() {
	part := os.Getenv(envExec)
	if part == "" {
		return
	}
	runtime.LockOSThread() // the first thread of the process
	if err := execPart(part, os.Args[len(os.Args)-1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// execPart starts a child, with a death signal, by the first thread or by another one, and runs this program again by
// the first thread. That one tells whether the child has stayed.
func execPart(part, file string) error {
	if part == "again" {
		return afterExec(file)
	}
	locked, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := lockOpenFile(locked); err != nil {
		return err
	}
	child := exec.Command("sleep", "60")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if part == "first thread" {
		err = child.Start()
	} else {
		started := make(chan error)
		go func() {
			runtime.LockOSThread() // it stays locked: the thread lives until the process runs another program
			started <- child.Start()
			select {}
		}()
		err = <-started
	}
	if err != nil {
		return err
	}
	if _, err := Inherit(locked, true); err != nil {
		return err
	}
	pid := strconv.Itoa(child.Process.Pid)
	if err := errors.Join(os.Setenv(envExec, "again"), os.Setenv("CHILD", pid)); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// afterExec is what the program finds that runs then.
func afterExec(file string) error {
	pid, err := strconv.Atoi(os.Getenv("CHILD"))
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	ended := 0
	for end := time.Now().Add(300 * time.Millisecond); ended == 0 && time.Now().Before(end); {
		if ended, err = syscall.Wait4(pid, &status, syscall.WNOHANG, nil); err != nil {
			return fmt.Errorf("it is no child any more: %w", err)
		}
		time.Sleep(time.Millisecond)
	}
	other, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := lockOpenFile(other); !errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("the lock is free: %w", err)
	}
	if ended == 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		fmt.Println("stays")
		return nil
	}
	fmt.Println("ended by", status.Signal())
	return nil
}

func lockOpenFile(file *os.File) error {
	return unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart})
}

// What an exchange relies on. A child's death signal is sent when the thread ends that has created it, not the process
// (PR_SET_PDEATHSIG(2const), "Caveats"). All threads but the one that calls end in execve(2), which takes over the
// first thread's id; the process keeps its children. An open file without close-on-exec stays open, and its lock stays
// with it (F_OFD_SETLK, fcntl_locking(2)).
func TestWhatStaysThroughExec(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{"first thread": "stays", "another thread": "ended by quit"} {
		again := exec.Command(os.Args[0], filepath.Join(t.TempDir(), "lock"))
		again.Env = append(os.Environ(), envExec+"="+by)
		said, err := again.CombinedOutput()
		if got := strings.TrimSpace(string(said)); err != nil || got != want {
			t.Errorf("the child of the %s: %q, %v, want %q", by, got, err, want)
		}
	}
}

// A signal that waits, blocked, is not kept for a Go program: its runtime unblocks SIGTERM in each thread before any of
// the program's own code runs (runtime.minitSignalMask, blockableSig). So who stops an agent has to wait for the end of
// an exchange (agent.BeforeStop). If this fails, Go has learned to wait, and that could be simpler.
func TestASignalThatWaitsEndsAGoProgram(t *testing.T) {
	t.Parallel()
	program := exec.Command(os.Args[0], "-test.run=^$")
	program.Env = append(os.Environ(), envBlocked+"=1")
	err := program.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.String() != "signal: terminated" {
		t.Errorf("it ended with %v, want by SIGTERM", err)
	}
}

// envBlocked has this test's own program send itself a signal that waits, and run itself again.
const envBlocked = "TOBAN_TEST_BLOCKED"

func init() {
	if os.Getenv(envBlocked) == "" {
		return
	}
	_ = os.Unsetenv(envBlocked)
	runtime.LockOSThread()
	var set unix.Sigset_t
	set.Val[0] = 1 << (uint(syscall.SIGTERM) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil); err != nil {
		panic(err)
	}
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTERM); err != nil {
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

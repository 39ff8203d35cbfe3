package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/postgres"
)

// envFirst has this test's program be the process with id 1 of a namespace.
const envFirst = "TOBAN_TEST_FIRST_PROCESS"

// Orphans of a container become children of its first process. Here that is this program, in a namespace of its own.
func TestOrphansAreReaped(t *testing.T) {
	if os.Getenv(envFirst) != "" {
		reapOrphans(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphansAreReaped$", "-test.v") // #nosec G204 -- itself
	cmd.Env = append(os.Environ(), envFirst+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, os.ErrPermission) {
		t.Skip("needs root, to make a namespace of processes")
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestOrphansAreReaped") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// reapOrphans is the first process: it makes orphans, and looks what becomes of them.
func reapOrphans(t *testing.T) {
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if os.Getpid() != 1 {
		t.Fatalf("it is process %d", os.Getpid())
	}
	orphan := func() {
		// The shell, whose end is not the reaper's to take, does not wait for what it has started.
		if err := postgres.Children.Run(exec.Command("sh", "-c", "true & exit 0")); err != nil {
			t.Fatalf("a child of its own: %v", err)
		}
	}
	orphan() // before it looks for the first time
	waitUntil(t, "there is an orphan", func() bool { return len(zombies(1)) > 0 })
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reapLoop(ctx) }()
	waitUntil(t, "the first one is reaped", func() bool { return len(zombies(1)) == 0 })
	for range 20 {
		orphan()
	}
	waitUntil(t, "all are reaped", func() bool {
		all, err := filepath.Glob("/proc/[0-9]*")
		return err == nil && len(all) == 1 // itself
	})
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func waitUntil(t *testing.T, what string, so func() bool) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it did not come true that %s", what)
		}
	}
}

package volume

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

const (
	// holderVariable names the volume that this test program is to own, instead of testing; childVariable has
	// it start a program, too.
	holderVariable, childVariable = "TOBAN_TEST_HOLD", "TOBAN_TEST_CHILD"
	// longDeadline is for what must come true.
	longDeadline = 30 * time.Second
)

func TestMain(m *testing.M) {
	if volume := os.Getenv(holderVariable); volume != "" {
		hold(volume)
	}
	os.Exit(m.Run())
}

// hold owns a volume, says which child it has started, and lives until it is killed.
func hold(volume string) {
	lock, err := Own(context.Background(), volume, func(string) {})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	child := &exec.Cmd{Process: &os.Process{}}
	if os.Getenv(childVariable) != "" {
		child = exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println(child.Process.Pid)
	for {
		time.Sleep(time.Hour)
		runtime.KeepAlive(lock) // else it would be closed as garbage
	}
}

// holder is another process that owns a volume, and what it has started; kill ends it, and nothing else.
func holder(t *testing.T, volume string, withChild bool) (child int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderVariable+"="+volume)
	if withChild {
		cmd.Env = append(cmd.Env, childVariable+"=1")
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: that is an error, as wanted
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if child, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("the holder says %q", line)
	}
	if child > 0 {
		t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	}
	return child, kill
}

// Two processes never own a volume at once, and who waits gets it when the other one is killed.
func TestAVolumeHasOneOwner(t *testing.T) {
	volume := t.TempDir()
	_, kill := holder(t, volume, false)
	ctx, cancel := context.WithTimeout(t.Context(), longDeadline)
	defer cancel()
	waiting, got := make(chan string, 1), make(chan error, 1)
	go func() {
		lock, err := Own(ctx, volume, func(whom string) { waiting <- whom })
		if err == nil {
			lock.Release()
		}
		got <- err
	}()
	select {
	case whom := <-waiting:
		if !strings.Contains(whom, "another agent") {
			t.Errorf("it waits for %q", whom)
		}
	case err := <-got:
		t.Fatalf("it did not wait: %v", err)
	}
	if lock, err := tryLock(volume, lockOwner); !errors.Is(err, errInUse) {
		t.Errorf("the lock was to be had: %v, %v", lock, err)
	}
	kill()
	if err := <-got; err != nil {
		t.Errorf("the lock of one that was killed: %v", err)
	}
}

// What an agent has started may outlive it, and works on the volume then: it owns that until it has ended. Who
// comes ends what it sees.
func TestAVolumeIsOwnedByProgramsToo(t *testing.T) {
	volume := t.TempDir()
	child, kill := holder(t, volume, true)
	kill()
	file, err := lockFile(filepath.Join(volume, folderLocks, lockOwner))
	if err != nil {
		t.Fatalf("a program has its agent's own lock: %v", err)
	}
	_ = file.Close() // nothing was written
	if lock, err := tryLock(volume, lockOwner); !errors.Is(err, errInUse) {
		t.Fatalf("a program that lives has no lock: %v, %v", lock, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longDeadline)
	defer cancel()
	lock, err := Own(ctx, volume, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
	if _, alive := os.Stat(fmt.Sprintf("/proc/%d/exe", child)); alive == nil {
		t.Error("the program still runs")
	}
}

// A restore in place works beside an agent, and not beside another restore.
func TestARestoreHasALockOfItsOwn(t *testing.T) {
	volume := t.TempDir()
	_, _ = holder(t, volume, false)
	lock, err := tryLock(volume, lockRestore)
	if err != nil {
		t.Fatalf("the agent has the lock of restores: %v", err)
	}
	defer lock.Release()
	if _, err := tryLock(volume, lockRestore); !errors.Is(err, errInUse) {
		t.Errorf("two restores: %v", err)
	}
}

// A restore that was given up may still be at work: what it makes is removed when it has ended.
func TestARestoreThatIsGivenUpIsRemovedWhenItHasEnded(t *testing.T) {
	volume := volume(t, true)
	tidier := &Tidier{Volume: volume, Config: func() protocol.Config { return protocol.Config{} }}
	restore, err := tryLock(volume, lockRestore)
	if err != nil {
		t.Fatal(err)
	}
	if err := tidier.tidy(); err != nil || content(restoredData(volume), "PG_VERSION") == "" {
		t.Errorf("it was removed under its feet: %v", err)
	}
	restore.Release()
	if err := tidier.tidy(); err != nil || content(restoredData(volume), "PG_VERSION") != "" {
		t.Errorf("it was not removed: %v", err)
	}
}

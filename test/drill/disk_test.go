package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// helperFile is in the environment of this test binary when it plays a drill that is
// killed: it is the file that is to be made afterwards.
const helperFile = "DRILL_TEST_AFTERWARDS"

func TestMain(m *testing.M) {
	if file := os.Getenv(helperFile); file != "" {
		if _, err := afterwards(time.Second, "touch", file); err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("started\n") //nolint:errcheck // the test reads it
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// A disk must thaw even if the drill is killed with no chance to heal anything.
func TestWhatIsToRunAfterwardsRunsThoughTheDrillWasKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "thawed")
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), helperFile+"="+file)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read(make([]byte, 1))
	_ = c.Process.Kill() // SIGKILL: nothing of it runs any more
	_ = c.Wait()
	if err != nil {
		t.Fatalf("it has not begun: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing has run")
		}
	}
}

func TestWhatIsNoLongerNeededAfterwardsNeverRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	never, err := afterwards(time.Minute, "touch", file)
	if err != nil {
		t.Fatal(err)
	}
	never()
	never()
	if _, err := os.Stat(file); err == nil {
		t.Error("it has run")
	}
	if _, err := afterwards(0, "false"); err != nil {
		t.Errorf("what it does is its own business: %v", err)
	}
}

func TestTheMachinesOwnDiskIsNeverFrozen(t *testing.T) {
	dir := t.TempDir()
	inside := filepath.Join(dir, "volume")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := ownFilesystem(inside); err == nil {
		t.Error("a plain directory would be frozen, and the machine with it")
	}
	if err := ownFilesystem(filepath.Join(dir, "none")); err == nil {
		t.Error("what is not there would be frozen")
	}
	if err := ownFilesystem("/proc"); err != nil {
		t.Errorf("a mount is refused: %v", err)
	}
}

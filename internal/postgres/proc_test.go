package postgres

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestAProcessThatNeverRunsItsProgramAgain(t *testing.T) {
	t.Parallel()
	status := func(state, own, shared string) string {
		return "Name:\tpostgres\nState:\t" + state + "\nSigPnd:\t" + own + "\nShdPnd:\t" +
			shared + "\nSigBlk:\t0000000000000100\n"
	}
	const none, kill, quit = "0000000000000000", "0000000000000100", "0000000000000004"
	for name, c := range map[string]struct {
		status string
		is     bool
	}{
		"one that waits for a disk, and has been killed":    {status("D (disk sleep)", kill, kill), true},
		"by its process alone":                              {status("D (disk sleep)", none, kill), true},
		"not one that has not":                              {status("D (disk sleep)", none, none), false},
		"not one that is only told to end":                  {status("D (disk sleep)", none, quit), false},
		"not one that runs, and has not taken the kill yet": {status("R (running)", kill, kill), false},
		"nor one that sleeps":                               {status("S (sleeping)", none, kill), false},
		"what can't be understood is not known to be":       {"nothing", false},
	} {
		if is := isKilled(c.status); is != c.is {
			t.Errorf("%s: %v", name, is)
		}
	}
	for stat, is := range map[string]bool{
		"7 (postgres) D 1 7 7 0 -1 4194564 5 0": true,
		"7 (po) st) S 1 7 7 0 -1 4194560 5 0":   false,
		"7 (postgres) D 1":                      false,
		"":                                      false,
	} {
		if isExiting(stat) != is {
			t.Errorf("%q: %v", stat, !is)
		}
	}
}

func TestAProcessThatLivesEndsNowhere(t *testing.T) {
	t.Parallel()
	if endsInKernel(os.Getpid()) {
		t.Error("this one does not end")
	}
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if endsInKernel(c.Process.Pid) {
		t.Error("one that is stopped may go on")
	}
	_ = c.Process.Kill()
	_ = c.Wait() // killed: that is an error, as wanted
	if !endsInKernel(c.Process.Pid) {
		t.Error("one that is gone never runs again")
	}
}

// A lock file that names a process which lives is removed: no server of ours runs any more, so that is a stranger. In
// single-user mode PostgreSQL writes its process with a minus.
func TestALockFileThatNamesAStrangerIsRemoved(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()         //nolint:errcheck // it is killed
	defer c.Process.Kill() //nolint:errcheck // likewise
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		content string
		stays   bool
	}{
		"a server's, of a stranger":                {fmt.Sprintf("%d\n/data\n", c.Process.Pid), false},
		"single-user mode's, of a stranger":        {fmt.Sprintf("-%d\n/data\n", c.Process.Pid), false},
		"a server's, of nobody":                    {fmt.Sprintf("%d\n/data\n", gone.Process.Pid), true},
		"single-user mode's, of nobody":            {fmt.Sprintf("-%d\n/data\n", gone.Process.Pid), true},
		"one that a crash has cut off, with no id": {"-", true},
	} {
		s := &Server{Data: DataDirectory{Volume: t.TempDir()}, Run: t.TempDir()}
		if err := os.MkdirAll(s.Data.Path(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.Data.pidFile(), []byte(x.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(s.Data.pidFile()); (err == nil) != x.stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

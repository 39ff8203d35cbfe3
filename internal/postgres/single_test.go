package postgres

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

	"github.com/jackc/pgx/v5/pgconn"
)

// single is a server whose program is a script.
func single(t *testing.T, script string) *Server {
	t.Helper()
	programs, volume := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "postgres"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &Server{Programs: Programs{Dir: programs, Major: 17}, Data: DataDirectory{Volume: volume}, Run: t.TempDir()}
	if err := os.MkdirAll(s.Data.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// A single-user mode that hangs is given up with a sentence, whether it can be killed or waits for a disk: then nobody
// can wait for its end. So it is where somebody ends the start, as a fence does.
func TestASingleUserModeThatHangsIsGivenUp(t *testing.T) {
	s := single(t, "echo it replays\nexec sleep 20\n")
	disk := make(chan struct{})
	defer close(disk)
	hangs := func(cmd *exec.Cmd) error {
		defer Children.Wait(cmd) //nolint:errcheck // the test has the error already
		<-disk
		return nil
	}
	for name, c := range map[string]struct {
		within, fenced time.Duration
		wait           func(*exec.Cmd) error
		want           string
		is             error
	}{
		"it can be killed": {300 * time.Millisecond, time.Minute, Children.Wait, "given up after 300ms",
			context.DeadlineExceeded},
		"it waits for a disk":                {300 * time.Millisecond, time.Minute, hangs, "it replays", errHangs},
		"it waits for a disk, and is fenced": {time.Minute, 300 * time.Millisecond, hangs, "it replays", errHangs},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(c.fenced, cancel)
		began, ended := time.Now(), make(chan error, 1)
		go func() { ended <- s.letUsIn(ctx, c.within, c.wait) }()
		select {
		case err := <-ended:
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it waits for %s already", name, time.Since(began))
		}
		stop.Stop()
		cancel()
	}
}

// A program that only reads, and that does not end when it is killed, is not waited for: here a child of its own has
// its output open.
func TestWhatOnlyReadsIsNotWaitedForWithoutEnd(t *testing.T) {
	const hangs = "sleep 20 & exec sleep 20\n"
	s := single(t, hangs)
	controldata := filepath.Join(s.Programs.Dir, "pg_controldata")
	if err := os.WriteFile(controldata, []byte("#!/bin/sh\n"+hangs), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(context.Context) error{
		"the control file": func(ctx context.Context) error { _, err := s.Control(ctx); return err },
		"a configuration":  func(ctx context.Context) error { return s.Check(ctx, Settings{}) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		if err := do(ctx); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(began))
		}
		cancel()
	}
}

// PostgreSQL's single-user mode ends in order after a statement that it has refused: that is told all the same.
func TestWhatTheSingleUserModeRefusesIsTold(t *testing.T) {
	said := `echo '2026-11-30 [7] ERROR:  role "postgres" does not exist'; echo backend\>; exit 0`
	err := single(t, said).LetUsIn(t.Context())
	if !errors.Is(err, errNotAllDone) || !strings.HasSuffix(err.Error(), `role "postgres" does not exist`) {
		t.Errorf("%v", err)
	}
	if err := single(t, "echo 'backend> '; exit 0").LetUsIn(t.Context()); err != nil {
		t.Errorf("nothing was refused: %v", err)
	}
}

// A postmaster that is killed, and that its kernel does not let go, is not waited for without end.
func TestAStopDoesNotWaitForWhatTheKernelHolds(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()                                                                  //nolint:errcheck // it was killed
	p := &Process{process: c.Process, data: t.TempDir(), done: make(chan struct{})} // nobody hears of its end
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	stopped := make(chan struct{})
	go func() { defer close(stopped); p.stop(ctx, StopImmediate, 100*time.Millisecond) }()
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits")
	}
}

// A fence waits for the command that is under way. A stop in order has nothing to wait for any more when the server has
// been killed, whatever time it had.
func TestAStopEndsWhenTheServerIsFenced(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait() //nolint:errcheck // it was killed
	// It ignores the stop: nobody hears of its end. Its processes are none.
	p := &Process{process: c.Process, data: t.TempDir(), done: make(chan struct{})}
	stopped := make(chan struct{})
	go func() { defer close(stopped); p.stop(t.Context(), StopMode(syscall.SIGCONT), time.Minute) }()
	select {
	case <-stopped:
		t.Fatal("it does not wait for the end of the server")
	case <-time.After(100 * time.Millisecond):
	}
	if err := p.Kill(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Fatal("it still waits")
	}
}

// The single-user mode undoes what the role postgres, or its database, forbids. It can't bring a database back.
func TestWhereLettingInHelps(t *testing.T) {
	for code, want := range map[string]bool{"28000": true, "55000": true, "3D000": false, "53300": false, "": false} {
		if got := CanBeLetIn(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%q: %t", code, got)
		}
	}
}

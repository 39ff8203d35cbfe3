package postgres

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// On a disk that hangs a program that reads it is killed in vain. Each further look was another process of that kind,
// for as long as the disk hung.
func TestNoSecondProgramReadsADiskThatHangs(t *testing.T) {
	c, disk := newChildSet(), make(chan struct{})
	hangs := func(cmd *exec.Cmd) error {
		<-disk
		return c.Wait(cmd)
	}
	look := func(of string, wait func(*exec.Cmd) error) (started bool, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		cmd := exec.CommandContext(ctx, "true")
		err = c.read(ctx, of, cmd, wait)
		return cmd.Process != nil, err
	}
	if started, err := look("data", hangs); !started || !errors.Is(err, errHangs) {
		t.Fatalf("the first: %t, %v", started, err)
	}
	for range 3 {
		began := time.Now()
		started, err := look("data", c.Wait)
		if started || !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "another one began 1s ago") {
			t.Errorf("a further one: %t, %v", started, err)
		}
		if took := time.Since(began); took > 90*time.Millisecond {
			t.Errorf("a further one waits for %s", took)
		}
	}
	if n := c.Others(); n != 1 {
		t.Errorf("%d processes read", n)
	}
	if started, err := look("other data", c.Wait); !started || err != nil {
		t.Errorf("one that reads another disk: %t, %v", started, err)
	}
	close(disk)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		started, err := look("data", c.Wait)
		if started && err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("when the disk answers: %t, %v", started, err)
		}
	}
}

// One that is under way is waited for: what it says may be of before the later one was asked.
func TestProgramsThatReadTheSameRunOneAfterAnother(t *testing.T) {
	c, folder := newChildSet(), t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "mkdir one && sleep 0.02 && rmdir one")
			cmd.Dir = folder
			if err := c.RunReading(t.Context(), "data", cmd); err != nil {
				t.Errorf("two run at once: %v", err)
			}
		})
	}
	all.Wait()
}

// Who waits for one that is under way is not held longer than it wants to wait.
func TestAProgramWaitsForItsTurnNoLongerThanItMay(t *testing.T) {
	c, disk, began := newChildSet(), make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		cmd := exec.CommandContext(t.Context(), "true")
		_ = c.read(t.Context(), "data", cmd, func(cmd *exec.Cmd) error {
			close(began)
			<-disk
			return c.Wait(cmd)
		})
	})
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	cmd := exec.CommandContext(ctx, "true")
	err := c.RunReading(ctx, "data", cmd)
	if !errors.Is(err, context.DeadlineExceeded) || cmd.Process != nil {
		t.Errorf("%v, %v", err, cmd.Process)
	}
	close(disk)
	first.Wait()
}

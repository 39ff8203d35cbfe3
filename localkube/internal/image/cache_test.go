package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestConcurrentBuildersBuildOnce(t *testing.T) {
	b := Builder{CacheDir: t.TempDir()}
	var builds atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			path, err := b.cached(t.Context(), "thing", "key", func(_, out string) error {
				builds.Add(1)
				return os.WriteFile(out, []byte("whole"), 0o644)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "whole" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	wg.Wait()
	if builds.Load() != 1 {
		t.Errorf("built %d times", builds.Load())
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	b := Builder{CacheDir: t.TempDir()}
	_, err := b.cached(t.Context(), "thing", "key", func(work, out string) error {
		for _, path := range []string{filepath.Join(work, "half"), out} {
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Error(err)
			}
		}
		return errors.New("no space")
	})
	if err == nil {
		t.Fatal("the build failed, its error was lost")
	}
	left, _ := filepath.Glob(filepath.Join(b.CacheDir, "*"))
	if len(left) != 1 || filepath.Ext(left[0]) != ".lock" {
		t.Errorf("more than the lock is left behind: %v", left)
	}
}

func TestKilledBuildersWorkIsRemoved(t *testing.T) {
	b := Builder{CacheDir: t.TempDir()}
	build := func(_, out string) error { return os.WriteFile(out, nil, 0o644) }
	path, err := b.cached(t.Context(), "thing", "key", build)
	if err != nil {
		t.Fatal(err)
	}
	stale := path + ".work-killed"
	if err := errors.Join(os.Mkdir(stale, 0o755), os.Remove(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.cached(t.Context(), "thing", "key", build); err != nil {
		t.Fatal(err)
	}
	if exists(stale) {
		t.Error("the work directory of a killed builder is still there")
	}
}

func TestWaitingForAnotherBuilderCanBeCancelled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
}

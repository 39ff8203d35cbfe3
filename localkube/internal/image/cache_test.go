package image

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/empty"
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

func TestPruneRemovesOldTarsOfOneRepositoryOnly(t *testing.T) {
	cases := map[string]struct {
		pruned string
		others []string
	}{
		"a repository whose name another begins with": {
			"docker.io/library/toban:1",
			[]string{"docker.io/library/toban-anything:1", "docker.io/library/toban/more:1"},
		},
		"a registry with a port": {
			"localhost:5000/toban:1", []string{"localhost:5000/other:1", "localhost:5001/toban:1"},
		},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			b := Builder{CacheDir: t.TempDir()}
			names := append(slices.Clone(c.others), slices.Repeat([]string{c.pruned}, keepBinaries+2)...)
			tars := emptyImages(t, b, names)
			current, old := tars[len(c.others)], tars[len(c.others)+1]
			if err := b.prune(c.pruned, current); err != nil {
				t.Fatal(err)
			}
			for _, tar := range tars {
				if exists(tar) == (tar == old) {
					t.Errorf("%s is there: %v", tar, exists(tar))
				}
				if !exists(tar + ".lock") {
					t.Errorf("the lock of %s is gone", tar)
				}
			}
		})
	}
}

// emptyImages makes images of nothing, the oldest first, and returns their tars.
func emptyImages(t *testing.T, b Builder, names []string) []string {
	t.Helper()
	var tars []string
	for i, name := range names {
		path, err := b.cached(t.Context(), name, i, func(_, out string) error {
			return writeLayout(out, name, empty.Image)
		})
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(time.Duration(i-len(names)) * time.Minute)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		tars = append(tars, path)
	}
	return tars
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

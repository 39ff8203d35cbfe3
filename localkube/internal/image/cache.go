package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lockPoll is how often a builder looks whether another one is done with the
// same image. flock can wait by itself, but then not be cancelled.
const lockPoll = 100 * time.Millisecond

// format is part of every cache key: raise it when the way tars are written
// changes, so that no tar of the old way is taken for one of the new.
const format = 1

// cached returns the tar of an image called name whose content is decided by
// key. If there is none yet, write makes it: work is an empty directory that is
// removed afterwards, whatever happens, and out is the file to write. Of several
// builders of the same image one makes it and the others wait.
func (b Builder) cached(ctx context.Context, name string, key any, write func(work, out string) error) (string, error) {
	hash, err := hashOf(key)
	if err != nil {
		return "", fmt.Errorf("hash the recipe of %s: %w", name, err)
	}
	if err := os.MkdirAll(b.CacheDir, 0o755); err != nil {
		return "", fmt.Errorf("make the image cache: %w", err)
	}
	path := filepath.Join(b.CacheDir, fmt.Sprintf("image-%s-%s.tar", fileName(name), hash))
	if exists(path) {
		return path, nil
	}
	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(path) {
		return path, nil
	}
	return path, b.make(name, path, write)
}

// make runs one build in a directory beside the result, so that the finished
// file appears by a rename and a half-written one never has the final name.
func (b Builder) make(name, path string, write func(work, out string) error) error {
	removeLeftovers(path)
	work, err := os.MkdirTemp(b.CacheDir, filepath.Base(path)+".work-")
	if err != nil {
		return fmt.Errorf("make a work directory for %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(work) }() // what stays, the next build of it removes

	b.sayf("image %s: building", name)
	start := time.Now()
	out := filepath.Join(work, "out.tar")
	if err := write(work, out); err != nil {
		return fmt.Errorf("build image %s: %w", name, err)
	}
	if err := os.Rename(out, path); err != nil {
		return fmt.Errorf("keep image %s: %w", name, err)
	}
	b.sayf("image %s: built in %s, %s", name, time.Since(start).Round(100*time.Millisecond), size(path))
	return nil
}

// removeLeftovers removes the work directories of builders that were killed.
// The caller holds the lock of path, so none of them is alive.
func removeLeftovers(path string) {
	old, _ := filepath.Glob(path + ".work-*")
	for _, dir := range old {
		_ = os.RemoveAll(dir) // what stays takes room, and is tried again
	}
}

// lock takes an exclusive lock on a file and returns what releases it. The lock
// ends with the process, so a crash leaves nothing locked. The file stays:
// removing it would let two builders hold locks on two files of one name.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("wait for another builder of %s: %w", path, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func hashOf(key any) (string, error) {
	text, err := json.Marshal(map[string]any{"format": format, "key": key})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:12], nil
}

// fileName turns an image name into a part of a file name.
func fileName(name string) string {
	return strings.NewReplacer("/", "-", ":", "-").Replace(name)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func size(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "unknown size"
	}
	return fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)
}

package image

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// PauseName is what the Pod sandbox image is called on the nodes; containerd's
// config names it.
const PauseName = "localhost/pause:1"

//go:embed pause/main.go
var pauseSource []byte

// Pause makes the Pod sandbox image and shows progress on standard error.
func Pause(ctx context.Context, cacheDir string) (tar string, err error) {
	return Builder{CacheDir: cacheDir, Progress: os.Stderr}.Pause(ctx)
}

// Pause makes the Pod sandbox image: one static binary on nothing.
func (b Builder) Pause(ctx context.Context) (string, error) {
	config := v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}
	key := []any{PauseName, string(pauseSource), config}
	return b.cached(ctx, "pause", key, func(work, out string) error {
		binary, err := compilePause(ctx, work)
		if err != nil {
			return err
		}
		entries := []entry{{name: "pause", mode: 0o755, data: binary}}
		return assemble(work, out, PauseName, entries, config)
	})
}

// compilePause builds the program from the source in this binary, so that it
// does not matter where, or whether, the repository is.
func compilePause(ctx context.Context, work string) ([]byte, error) {
	source, binary := filepath.Join(work, "main.go"), filepath.Join(work, "pause")
	if err := os.WriteFile(source, pauseSource, 0o600); err != nil {
		return nil, fmt.Errorf("write the source of pause: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w -buildid=", "-o", binary, source)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GO111MODULE=off", "GOWORK=off", "GOFLAGS=", "GOOS=linux")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile pause (is go on PATH?): %w: %s", err, text)
	}
	return os.ReadFile(binary)
}

// assemble writes an image that holds entries and nothing else.
func assemble(work, out, name string, entries []entry, config v1.Config) error {
	rootfs := filepath.Join(work, "rootfs.tar")
	if err := writeRootfs(rootfs, entries); err != nil {
		return err
	}
	return pack(work, out, name, rootfs, config)
}

// pack writes an image from the tar of its root file system.
func pack(work, out, name, rootfs string, config v1.Config) error {
	layer := filepath.Join(work, "layer.tar.zst")
	if err := compress(layer, rootfs); err != nil {
		return err
	}
	image, err := describe(layer, runtime.GOARCH, config)
	if err != nil {
		return err
	}
	return writeLayout(out, name, image)
}

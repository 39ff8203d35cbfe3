package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Builder builds components into a cache.
type Builder struct {
	Components string    // directory with one module per component
	Cache      string    // directory that keeps what was built
	Progress   io.Writer // where to say what is being built
}

// NewBuilder returns a Builder with the usual places.
func NewBuilder(progress io.Writer) (Builder, error) {
	components, err := FindComponents()
	if err != nil {
		return Builder{}, err
	}
	cache, err := CacheDir()
	return Builder{Components: components, Cache: cache, Progress: progress}, err
}

// CacheDir is where everything lies that is kept between clusters.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(base, "localkube"), nil
}

// Get returns the directory with the component's programs, which is
// <cache>/<component>-<hash>, and builds them first if need be.
func (b Builder) Get(ctx context.Context, r Recipe) (string, error) {
	dir, version, err := b.locate(ctx, r)
	if err != nil || exists(dir) {
		return dir, err
	}
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(b.Cache, "."+r.Name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) { // somebody else built it meanwhile
		return dir, nil
	}
	// What a build that was killed has left; none runs now but this one.
	left, _ := filepath.Glob(filepath.Join(b.Cache, "."+r.Name+"-*"))
	for _, path := range left {
		_ = os.RemoveAll(path) // what stays takes room, and is tried again
	}
	return dir, b.build(ctx, r, version, dir)
}

// Missing returns the recipes that Get would have to build.
func (b Builder) Missing(ctx context.Context, recipes []Recipe) ([]Recipe, error) {
	var missing []Recipe
	for _, r := range recipes {
		dir, _, err := b.locate(ctx, r)
		if err != nil {
			return nil, err
		}
		if !exists(dir) {
			missing = append(missing, r)
		}
	}
	return missing, nil
}

func (b Builder) locate(ctx context.Context, r Recipe) (dir, version string, err error) {
	source := filepath.Join(b.Components, r.Name)
	goMod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", "", fmt.Errorf("read the recipe of %s: %w", r.Name, err)
	}
	if version, err = r.version(string(goMod)); err != nil {
		return "", "", err
	}
	toolchain, err := goVersion(ctx)
	if err != nil {
		return "", "", err
	}
	sum, err := hash(source, append(r.arguments(version, ""), r.Links...), toolchain)
	if err != nil {
		return "", "", fmt.Errorf("hash the recipe of %s: %w", r.Name, err)
	}
	return filepath.Join(b.Cache, r.Name+"-"+sum), version, nil
}

// hash sums up all that decides what is built: the files, the flags, the compiler.
func hash(source string, flags []string, toolchain string) (string, error) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s/%s\n%q\n", toolchain, runtime.GOOS, runtime.GOARCH, flags)
	root, err := os.OpenRoot(source)
	if err != nil {
		return "", err
	}
	defer root.Close()
	files := root.FS()
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(data))
		sum.Write(data)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil))[:12], err
}

// build builds beside dir and then renames, so that dir is there complete or not at all.
func (b Builder) build(ctx context.Context, r Recipe, version, dir string) error {
	temporary, err := os.MkdirTemp(b.Cache, "."+r.Name+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // there only if something failed
	if err := b.compile(ctx, r, version, temporary+"/"); err != nil {
		return err
	}
	for _, name := range r.Links {
		if err := os.Symlink(r.Name, filepath.Join(temporary, name)); err != nil {
			return err
		}
	}
	if err := os.Chmod(temporary, 0o755); err != nil { //nolint:gosec // a directory of programs, which others run too
		return err
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("keep what was built: %w", err)
	}
	return nil
}

// goVersion asks the compiler that would build, which may not be the one that
// built this program.
func goVersion(ctx context.Context) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Env = append(os.Environ(), "GOTOOLCHAIN=local")
	out, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", errors.New("there is no go command in PATH: install Go 1.26 from https://go.dev/dl (or your " +
			"system's package golang)")
	}
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// lockPoll is how often a builder looks whether another one is done with the
// same component. flock can wait by itself, but then not be cancelled.
const lockPoll = 100 * time.Millisecond

// lock keeps two builds of one component from running at once.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // the lock ends with it
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock the cache: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("wait for another builder, who holds %s: %w", path, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

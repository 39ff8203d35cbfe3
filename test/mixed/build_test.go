package mixed

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

//go:embed releases
var list string

// release is a Toban that was published, or the one that is here.
type release struct {
	version string
	// commit is empty for the code as it is here.
	commit string
	// changed names files of it to take from elsewhere: what go build -overlay reads.
	changed string
	// program is the agent's, once that is built.
	program string
}

// today is the release that is here.
func today(t *testing.T) release {
	t.Helper()
	return release{version: "today"}.built(t)
}

// releases are those of the list, the oldest first.
func releases(t *testing.T) []release {
	t.Helper()
	var all []release
	for lines := bufio.NewScanner(strings.NewReader(list)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 2 || len(words[1]) != 40 {
			t.Fatalf("test/mixed/releases: %q is no version with the whole name of a commit", lines.Text())
		}
		all = append(all, release{version: words[0], commit: words[1]})
	}
	if len(all) == 0 {
		t.Fatal("test/mixed/releases names no release")
	}
	return all
}

// programs is a folder with the agents' programs, where any user may run them.
var programs string

// building is held by who builds: each program is built once.
var building sync.Mutex

// built is a release with its program.
func (r release) built(t *testing.T) release {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	r.program = filepath.Join(programs, "toban-"+r.version)
	if _, err := os.Stat(r.program); err == nil {
		return r
	}
	root, err := output(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		t.Fatal(err)
	}
	if r.commit == "" {
		err = r.build(t.Context(), root)
	} else {
		r.mustBeHere(t, root)
		err = r.buildCached(t.Context(), root, t.TempDir())
	}
	if err != nil {
		t.Fatalf("build the agent of %s: %v", r.version, err)
	}
	return r
}

// mustBeHere skips the test where the repository does not have the commit.
func (r release) mustBeHere(t *testing.T, root string) {
	t.Helper()
	look := exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", r.commit+"^{commit}")
	if _, err := output(look); err != nil {
		t.Skipf("the commit of release %s is not here, so that no agent of it can be built: "+
			"git fetch --unshallow, or clone the repository whole: %v", r.version, err)
	}
}

// buildCached builds the program from the commit, or takes it from the cache.
func (r release) buildCached(ctx context.Context, root, source string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	kept := filepath.Join(cache, "toban", "release-"+r.commit, "toban")
	if _, err := os.Stat(kept); err == nil {
		return copyFile(r.program, kept)
	}
	if err := extract(ctx, root, r.commit, source); err != nil {
		return err
	}
	if err := r.build(ctx, source); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), copyFile(kept, r.program))
}

// extract writes the files of a commit into a folder.
func extract(ctx context.Context, root, commit, folder string) error {
	archive := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", commit)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", folder)
	var err error
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	_, unpacked := output(unpack)
	return errors.Join(unpacked, archive.Wait())
}

// build builds the program from a folder with the code.
func (r release) build(ctx context.Context, folder string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-overlay="+r.changed,
		"-ldflags=-s -w -X main.version="+r.version, "-o", r.program, "./cmd/toban")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	_, err := output(build)
	return err
}

// output runs a program, and has what it complains of in the error.
func output(cmd *exec.Cmd) (string, error) {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", cmd.Args[0], err, strings.TrimSpace(complaints.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// copyFile copies a program beside its target first, so that what is there is whole.
func copyFile(target, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(target), "unfinished-")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(0o755), out.Close(), os.Rename(out.Name(), target))
}

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
	"testing"
)

//go:embed releases
var list string

// release is a Toban that was published, or the one that is here.
type release struct {
	version string
	// commit is empty for the code as it is here.
	commit string
}

var today = release{version: "today"}

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
		all = append(all, release{words[0], words[1]})
	}
	return all
}

// program is the agent's program of a release, where any user may run it.
func (r release) program(t *testing.T) string {
	t.Helper()
	built, err := r.build(t)
	if err != nil {
		t.Fatalf("build the agent of %s: %v", r.version, err)
	}
	folder, err := os.MkdirTemp("/tmp", "toban-mixed-") //nolint:usetesting // the servers' user may not enter the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	target := filepath.Join(folder, "toban-"+r.version)
	if err := errors.Join(os.Chmod(folder, 0o755), copyFile(target, built)); err != nil {
		t.Fatal(err)
	}
	return target
}

// build makes the program, once for each commit.
func (r release) build(t *testing.T) (string, error) {
	t.Helper()
	root, err := output(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return "", err
	}
	if r.commit == "" {
		target := filepath.Join(t.TempDir(), "toban")
		return target, goBuild(t.Context(), root, target, r.version)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, "toban", "release-"+r.commit, "toban")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if _, err := output(exec.CommandContext(t.Context(), "git", "-C", root, "cat-file", "-e", r.commit+"^{commit}")); err != nil {
		t.Skipf("the commit of release %s is not here, so that no agent of it can be built: git fetch --unshallow, or clone the repository whole: %v",
			r.version, err)
	}
	source := t.TempDir()
	if err := extract(t.Context(), root, r.commit, source); err != nil {
		return "", err
	}
	fresh := filepath.Join(source, "toban-built")
	if err := goBuild(t.Context(), source, fresh, r.version); err != nil {
		return "", err
	}
	return target, errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), copyFile(target, fresh))
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

func goBuild(ctx context.Context, folder, target, version string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+version, "-o", target, "./cmd/toban")
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

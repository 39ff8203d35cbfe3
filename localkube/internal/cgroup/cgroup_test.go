package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHierarchiesAreThoseOfVersion1AndTheOneBesideThem(t *testing.T) {
	const mounts = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu
37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
50 31 0:39 / /mnt/other rw,relatime - cgroup2 cgroup2 rw
`
	got := hierarchies(mounts)
	want := []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatRunsInACgroupIsFoundFrozenAndEnded(t *testing.T) {
	const path = "/localkube-test/child"
	tree := detectOrSkip(t)
	if err := tree.Create(path); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { tree.Remove(ctx, "/localkube-test") }) //nolint:errcheck // checked below

	if err := tree.Favour("/localkube-test", 3); err != nil {
		t.Fatal(err)
	}
	if got := shareOf(tree, "/localkube-test"); got != "3072" && got != "300" {
		t.Errorf("its share is %q, want three times the usual one", got)
	}

	// The shell joins every hierarchy and becomes sleep.
	script := `for dir in "$@"; do echo $$ > "$dir/cgroup.procs" || exit; done; exec sleep 60`
	sleeper := exec.Command("sh", append([]string{"-c", script, "sh"}, tree.Dirs(path)...)...)
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	for len(tree.Processes("/localkube-test")) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := tree.Freeze(ctx, path, true); err != nil {
		t.Fatal(err)
	}
	go sleeper.Wait() //nolint:errcheck // it is killed
	if err := tree.Kill(ctx, "/localkube-test"); err != nil {
		t.Fatal(err)
	}
	if left := tree.Processes("/localkube-test"); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
	if err := tree.Remove(ctx, "/localkube-test"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range tree.Dirs("/localkube-test") {
		if exists(dir) {
			t.Errorf("%s is still there", dir)
		}
	}
}

func detectOrSkip(t *testing.T) Tree {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	tree, err := Detect()
	if err != nil {
		t.Skipf("no cgroups here: %v", err)
	}
	return tree
}

// shareOf is a cgroup's share of the processors.
func shareOf(tree Tree, path string) string {
	for _, dir := range tree.Dirs(path) {
		for _, name := range []string{"cpu.shares", "cpu.weight"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return strings.TrimSpace(string(text))
			}
		}
	}
	return ""
}

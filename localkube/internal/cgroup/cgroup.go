// Package cgroup keeps the cluster's cgroups: one tree below /localkube, with a
// branch per node. All that ever runs for the cluster is in it, Pods included,
// so it is also how to find, freeze and end what runs.
//
// With version 1 there is a tree in each of several hierarchies, with version 2
// only one. Which one the machine has is looked up, never assumed.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const base = "/sys/fs/cgroup"

// A Tree is the machine's cgroups.
type Tree struct {
	unified     bool     // version 2
	hierarchies []string // the root directory of each; with version 2 there is one
	processes   string   // the hierarchy in which processes are looked up and frozen
}

// Detect looks up what the machine has.
func Detect() (Tree, error) {
	var at unix.Statfs_t
	if err := unix.Statfs(base, &at); err != nil {
		return Tree{}, fmt.Errorf("no cgroups are mounted at %s: %w", base, err)
	}
	if at.Type == unix.CGROUP2_SUPER_MAGIC {
		return Tree{unified: true, hierarchies: []string{base}, processes: base}, nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Tree{}, fmt.Errorf("list the mounts: %w", err)
	}
	tree := Tree{hierarchies: hierarchies(string(mounts)), processes: filepath.Join(base, "freezer")}
	if !slices.Contains(tree.hierarchies, tree.processes) {
		return Tree{}, fmt.Errorf("the cgroup hierarchy %s is not mounted: run `mount -t cgroup -o freezer cgroup "+
			"%[1]s`", tree.processes)
	}
	return tree, nil
}

// hierarchies reads the mount points of version 1 out of a mountinfo. Beside
// them there may be one of version 2 without controllers ("hybrid"), in which
// the container runtime makes cgroups too.
func hierarchies(mountinfo string) []string {
	var dirs []string
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) >= 5 && len(kind) > 0 && (kind[0] == "cgroup" || kind[0] == "cgroup2") &&
			strings.HasPrefix(fields[4], base+"/") {
			dirs = append(dirs, fields[4])
		}
	}
	return dirs
}

// Dirs are the directories of the cgroup at path, one per hierarchy.
func (t Tree) Dirs(path string) []string {
	dirs := make([]string, len(t.hierarchies))
	for i, hierarchy := range t.hierarchies {
		dirs[i] = filepath.Join(hierarchy, path)
	}
	return dirs
}

// Create makes the cgroup at path and those above it.
func (t Tree) Create(path string) error {
	for _, hierarchy := range t.hierarchies {
		parent := hierarchy
		for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			if t.unified {
				delegate(parent)
			}
			child := filepath.Join(parent, name)
			if err := os.Mkdir(child, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make the cgroup: %w", err)
			}
			if err := inheritCPUs(parent, child); err != nil {
				return err
			}
			parent = child
		}
	}
	return nil
}

// Favour gives what runs at or below path so many times the usual share of the processors where they don't suffice for
// all. A cgroup as a whole has by default the share of one process that is in none.
func (t Tree) Favour(path string, times int) error {
	name, value := "cpu.shares", 1024*times // Linux, cgroup-v1/cpu: sched-design-CFS.rst
	if t.unified {
		name, value = "cpu.weight", 100*times // Linux, cgroup-v2.rst
	}
	for _, dir := range t.Dirs(path) {
		file := filepath.Join(dir, name)
		if !exists(file) {
			continue // a hierarchy of other controllers
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(value)), 0o600); err != nil {
			return fmt.Errorf("give a share of the processors: %w", err)
		}
	}
	return nil
}

// Branch readies a cgroup of version 2 for cgroups below it that limit resources.
func (t Tree) Branch(path string) {
	if t.unified {
		delegate(filepath.Join(base, path))
	}
}

// delegate turns on what there is of the controllers for the cgroups below dir.
// One that is missing is missed by the kubelet, in its own words.
func delegate(dir string) {
	for _, controller := range []string{"cpuset", "cpu", "io", "memory", "hugetlb", "pids"} {
		os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), //nolint:errcheck // see above
			[]byte("+"+controller), 0o600)
	}
}

// inheritCPUs copies what a new cpuset of version 1 does not inherit; while it
// is empty no process can be in it.
func inheritCPUs(parent, child string) error {
	if !strings.HasPrefix(child, filepath.Join(base, "cpuset")+"/") {
		return nil
	}
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		if now, _ := os.ReadFile(filepath.Join(child, file)); strings.TrimSpace(string(now)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("read the CPUs of a cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o600); err != nil {
			return fmt.Errorf("give CPUs to a cgroup: %w", err)
		}
	}
	return nil
}

// Freeze stops all processes at or below path in their tracks, or lets them go on.
func (t Tree) Freeze(ctx context.Context, path string, frozen bool) error {
	dir := filepath.Join(t.processes, path)
	if _, err := os.Stat(dir); err != nil && !frozen {
		return nil // what is not there is not frozen
	}
	file, value, reached := t.freezer(dir, frozen)
	if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
		return fmt.Errorf("freeze or thaw %s: %w", path, err)
	}
	for deadline := time.Now().Add(10 * time.Second); !reached(); {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%s has not become frozen=%v: a process may hang in a system call", path, frozen)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

func (t Tree) freezer(dir string, frozen bool) (file, value string, reached func() bool) {
	state, line := "THAWED", "frozen 0"
	value = "0"
	if frozen {
		state, line, value = "FROZEN", "frozen 1", "1"
	}
	if t.unified {
		return filepath.Join(dir, "cgroup.freeze"), value, func() bool {
			events, _ := os.ReadFile(filepath.Join(dir, "cgroup.events"))
			return strings.Contains(string(events), line)
		}
	}
	file = filepath.Join(dir, "freezer.state")
	return file, state, func() bool {
		now, _ := os.ReadFile(file)
		return strings.TrimSpace(string(now)) == state
	}
}

// Processes returns the pids of all that runs at or below path.
func (t Tree) Processes(path string) []int {
	var pids []int
	for _, dir := range t.dirs(path, t.processes) {
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for field := range strings.FieldsSeq(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// dirs returns the directory of path in a hierarchy and all below it, the
// deepest last.
func (t Tree) dirs(path, hierarchy string) []string {
	var dirs []string
	note := func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() { // cgroups vanish while they are walked
			dirs = append(dirs, path)
		}
		return nil
	}
	_ = filepath.WalkDir(filepath.Join(hierarchy, path), note) // note never fails
	return dirs
}

// Kill ends all that runs at or below path, even what is frozen. It goes on
// until nothing is left, since processes may be born while it works.
func (t Tree) Kill(ctx context.Context, path string) error {
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err := t.thaw(ctx, path); err != nil {
			return err
		}
		pids := t.Processes(path)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("processes %v in the cgroup %s survive SIGKILL: they may hang in a system call",
				pids, path)
		}
		for _, pid := range pids {
			unix.Kill(pid, unix.SIGKILL) //nolint:errcheck // it has ended meanwhile
		}
	}
}

// thaw lets everything below path go on: a frozen process of version 1 does
// not even die, and each cgroup below can be frozen by itself.
func (t Tree) thaw(ctx context.Context, path string) error {
	for _, dir := range t.dirs(path, t.processes) {
		inside := strings.TrimPrefix(dir, t.processes)
		if err := t.Freeze(ctx, inside, false); err != nil && exists(dir) {
			return err
		}
	}
	return nil
}

// Remove removes the cgroup at path and those below it. Nothing may run there.
func (t Tree) Remove(ctx context.Context, path string) error {
	var errs []error
	for _, hierarchy := range t.hierarchies {
		dirs := t.dirs(path, hierarchy)
		slices.Reverse(dirs)
		for _, dir := range dirs {
			errs = append(errs, removeDir(ctx, dir))
		}
	}
	return errors.Join(errs...)
}

// removeDir tries for a while: a process that has ended leaves its cgroup a
// moment later.
func removeDir(ctx context.Context, dir string) error {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("remove the cgroup %s: %w", dir, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Package mount finds and removes the mounts below a directory.
package mount

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Below returns the mount points at or below any of dirs, the latest first:
// the order in which they can be unmounted.
func Below(dirs ...string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts: %w", err)
	}
	return below(string(table), dirs), nil
}

func below(table string, dirs []string) []string {
	var points []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth is where
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if slices.ContainsFunc(dirs, func(dir string) bool {
			return point == dir || strings.HasPrefix(point, dir+"/")
		}) {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}

// unescape undoes how the kernel writes what would break a line or a field.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Remove unmounts all that is at or below dirs. What is busy is detached: it
// vanishes from sight now, and from the kernel with its last user.
func Remove(dirs ...string) error {
	points, err := Below(dirs...)
	if err != nil {
		return err
	}
	for _, point := range points {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		if err == unix.EBUSY {
			err = unix.Unmount(point, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		// EINVAL: a mount elsewhere that this one was propagated from has gone, and it with it.
		if err != nil && err != unix.EINVAL && err != unix.ENOENT {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// RemoveTree unmounts all below dirs and removes them. It refuses to remove
// anything while something is still mounted there, so that no file of
// somebody else's is ever reached through a mount.
func RemoveTree(dirs ...string) error {
	if err := Remove(dirs...); err != nil {
		return err
	}
	left, err := Below(dirs...)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("still mounted, so nothing below is removed: %s", strings.Join(left, ", "))
	}
	for _, dir := range dirs {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
	}
	return nil
}

package volume

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one line of /proc/self/mountinfo.
type mount struct {
	// Device is what is mounted, for example /dev/loop3.
	Device string
	// Point is where.
	Point string
}

// mounts lists what is mounted, in the order it was mounted.
func mounts() ([]mount, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer file.Close()
	return parseMounts(file)
}

// parseMounts reads lines such as
//
//	36 35 7:3 / /var/x/mnt rw,noatime shared:1 - ext4 /dev/loop3 rw
func parseMounts(r io.Reader) ([]mount, error) {
	var all []mount
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		left, right, ok := strings.Cut(lines.Text(), " - ")
		where, what := strings.Fields(left), strings.Fields(right)
		if !ok || len(where) < 5 || len(what) < 2 {
			continue
		}
		all = append(all, mount{Device: unescape(what[1]), Point: unescape(where[4])})
	}
	return all, lines.Err()
}

// unescape undoes the kernel's \ooo for spaces and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// deviceAt returns the device that is mounted at a path, or "".
func deviceAt(path string) (string, error) {
	all, err := mounts()
	if err != nil {
		return "", err
	}
	device := ""
	for _, m := range all {
		if m.Point == path {
			device = m.Device // the last one is on top
		}
	}
	return device, nil
}

// unmount takes a mount away at once. What still uses it keeps it, unseen, until
// it ends.
func unmount(path string) error {
	err := unix.Unmount(path, 0)
	if errors.Is(err, unix.EBUSY) {
		err = unix.Unmount(path, unix.MNT_DETACH)
	}
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) { // not mounted, or gone
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}

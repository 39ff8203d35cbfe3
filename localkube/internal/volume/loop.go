package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	loopControl      = "/dev/loop-control"
	loopControlMajor = 10
	loopControlMinor = 237
	loopMajor        = 7
	// attachTries bounds the race for a free device against other programs.
	attachTries = 50
)

// loopsWork tells whether this machine lets us use loop devices.
func loopsWork() error {
	if err := ensureNode(loopControl, unix.S_IFCHR, loopControlMajor, loopControlMinor); err != nil {
		return err
	}
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer control.Close()
	device, err := freeLoop(control)
	if err != nil {
		return err
	}
	return device.Close()
}

// attach connects a file to a free loop device and returns the device, open. The
// device detaches itself when it is neither open nor mounted, so a crash between
// the two leaves nothing behind.
func attach(path string) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s (is the loop module loaded?): %w", loopControl, err)
	}
	defer control.Close()
	backing, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the disk: %w", err)
	}
	defer backing.Close()
	for range attachTries {
		device, err := freeLoop(control)
		if err != nil {
			return nil, err
		}
		err = configure(device, backing)
		if err == nil {
			return device, nil
		}
		_ = device.Close() // it is not ours
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("attach %s to %s: %w", path, device.Name(), err)
		}
	}
	return nil, fmt.Errorf("attach %s: other programs took every free loop device", path)
}

// freeLoop opens a free loop device; the kernel makes one if there is none.
func freeLoop(control *os.File) (*os.File, error) {
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, fmt.Errorf("get a free loop device: %w", err)
	}
	path := "/dev/loop" + strconv.Itoa(number)
	if err := ensureNode(path, unix.S_IFBLK, loopMajor, number); err != nil {
		return nil, err
	}
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open loop device: %w", err)
	}
	return device, nil
}

// ensureNode makes a device node where no devtmpfs does.
func ensureNode(path string, kind uint32, major, minor int) error {
	number := unix.Mkdev(uint32(major), uint32(minor)) //nolint:gosec // the kernel's, or constants
	err := unix.Mknod(path, kind|0o600, int(number))   //nolint:gosec // device numbers are of 32 bits here
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make device node %s: %w", path, err)
	}
	return nil
}

func configure(device, backing *os.File) error {
	config := &unix.LoopConfig{Fd: uint32(backing.Fd())} //nolint:gosec // a descriptor is a small number
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	copy(config.Info.File_name[:len(config.Info.File_name)-1], backing.Name())
	return unix.IoctlLoopConfigure(int(device.Fd()), config)
}

// refreshCapacity makes a loop device take note that its file has grown.
func refreshCapacity(path string) error {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open loop device: %w", err)
	}
	defer device.Close()
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("grow %s: %w", path, err)
	}
	return nil
}

// loopsBelow lists the loop devices (as /dev/loopN) whose files are below root.
func loopsBelow(root string) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list loop devices: %w", err)
	}
	var devices []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it was detached meanwhile
		}
		backing := strings.TrimSuffix(strings.TrimSpace(string(text)), " (deleted)")
		if below(root, backing) {
			devices = append(devices, "/dev/"+strings.Split(file, "/")[3])
		}
	}
	return devices, nil
}

// detach frees a loop device. One that is still in use somewhere frees itself
// when that ends.
func detach(path string) error {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open loop device: %w", err)
	}
	defer device.Close()
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detach %s: %w", path, err)
	}
	return nil
}

// below tells whether path is inside the directory root.
func below(root, path string) bool {
	return strings.HasPrefix(path, root+"/")
}

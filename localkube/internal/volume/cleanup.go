package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	detachWait = 5 * time.Second
	detachPoll = 5 * time.Millisecond
)

// Cleanup unmounts every volume below root, wherever it is mounted, and detaches
// its loop device; after a crash too, and with no provisioner running. Nothing
// else's mounts and devices are touched, and no file is deleted.
func Cleanup(root string) error {
	if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	root, err := resolve(root)
	if err != nil {
		return err
	}
	devices, err := loopsBelow(root)
	if err != nil {
		return err
	}
	all, err := mounts()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range slices.Backward(all) { // the last mounted first: mounts may lie in mounts
		if below(root, m.Point) || slices.Contains(devices, m.Device) {
			errs = append(errs, unmount(m.Point))
		}
	}
	for _, device := range devices {
		errs = append(errs, detach(device))
	}
	errs = append(errs, awaitDetached(root))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up volumes in %s: %w", filepath.Clean(root), err)
	}
	return nil
}

// awaitDetached waits until the kernel is done with our loop devices: it lets go
// of one a moment after the last user has.
func awaitDetached(root string) error {
	deadline := time.Now().Add(detachWait)
	for {
		devices, err := loopsBelow(root)
		if err != nil || len(devices) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%v are still in use: stop the cluster's containers, and they detach themselves", devices)
		}
		time.Sleep(detachPoll)
	}
}

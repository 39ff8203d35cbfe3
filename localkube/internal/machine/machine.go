// Package machine sees to it that this machine can carry a cluster: who runs
// the command, which programs there are, and which of the kernel's settings
// the cluster will change.
package machine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Check refuses machines and users with which nothing can come of it.
func Check() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("localkube makes network namespaces and cgroups, which only Linux has: this is %s; "+
			"use a Linux machine or a virtual one", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("localkube makes network namespaces, mounts and cgroups, for which it has to be " +
			"root: run it with sudo")
	}
	return nil
}

// capSysResource is the number of the capability in capabilities(7).
const capSysResource = 24

// CanLowerOOMScores reports whether a process here may ask to be spared when
// memory runs out.
func CanLowerOOMScores() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err == nil && hasCapability(string(status), capSysResource)
}

func hasCapability(status string, number uint) bool {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, "CapEff:"); found {
			bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && bits>>number&1 == 1
		}
	}
	return false
}

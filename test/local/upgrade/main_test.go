// Package upgrade_test moves the data of real PostgreSQL servers to other major versions, without agents and without
// Kubernetes.
package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"toban.dev/internal/work/major"
	"toban.dev/test/local/aspostgres"
	"toban.dev/test/releases"
)

// Folders on file systems of their own: reflinksVariable on one that has reflinks, smallVariable on one that is
// nearly full. They are "" where root can't make them.
const (
	reflinksVariable = "TOBAN_TEST_REFLINKS"
	smallVariable    = "TOBAN_TEST_SMALL"
)

// TestMain runs the tests; or, where it was asked to, one upgrade, which the test that has asked for it ends somewhere.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	if len(os.Args) > 3 && os.Args[1] == "upgrade" && os.Args[2] == "dump" { // as pg_upgrade calls it
		os.Exit(dump(os.Args[3], os.Args[4:]))
	}
	aspostgres.FindReleases(15, 17, 18)
	if major := releases.Wanted(); major > 0 {
		aspostgres.FindReleases(major)
	}
	os.Exit(aspostgres.Run(m, fileSystems))
}

// dump does what the verb does that is in the place of pg_dump.
func dump(program string, args []string) int {
	if err := major.Dump(context.Background(), program, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fileSystems mounts those that the tests need.
func fileSystems(home aspostgres.Home) (environment []string, end func(), err error) {
	var unmounts []func()
	for variable, size := range map[string]string{reflinksVariable: "3G", smallVariable: "400M"} {
		mounted, unmount, err := fileSystem(home, variable, size)
		if err != nil {
			fmt.Fprintln(os.Stderr, "without a file system of its own:", err)
			continue
		}
		unmounts = append(unmounts, unmount)
		environment = append(environment, variable+"="+mounted)
	}
	return environment, func() {
		for _, unmount := range unmounts {
			unmount()
		}
	}, nil
}

// fileSystem makes and mounts one with reflinks.
func fileSystem(home aspostgres.Home, name, size string) (mounted string, unmount func(), err error) {
	image, mounted := filepath.Join(home.Folder, name+".xfs"), filepath.Join(home.Folder, name)
	unmount = func() { _ = exec.Command("umount", "--lazy", mounted).Run() }
	if err := os.Mkdir(mounted, 0o700); err != nil {
		return "", nil, err
	}
	for _, program := range [][]string{
		{"truncate", "--size", size, image}, {"mkfs.xfs", "-q", "-m", "reflink=1", image},
		{"mount", "-o", "loop", image, mounted},
	} {
		if out, err := exec.Command(program[0], program[1:]...).CombinedOutput(); err != nil {
			return "", nil, errors.Join(fmt.Errorf("%s: %w: %s", program[0], err, out), os.Remove(mounted))
		}
	}
	return mounted, unmount, os.Chown(mounted, home.UID, home.GID)
}

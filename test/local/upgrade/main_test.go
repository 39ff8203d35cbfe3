// Package upgrade_test moves the data of real PostgreSQL servers to other major versions, without agents and without
// Kubernetes.
package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"toban.dev/test/releases"
)

// releaseVariable has the folder of a PostgreSQL's programs by its major version, or why it is not there.
const releaseVariable = "TOBAN_TEST_POSTGRESQL_"

// Folders on file systems of their own: reflinksVariable on one that has reflinks, smallVariable on one that is
// nearly full. They are "" where root can't make them.
const (
	reflinksVariable = "TOBAN_TEST_REFLINKS"
	smallVariable    = "TOBAN_TEST_SMALL"
)

// majors are the versions.
var majors = []int{15, 17, 18}

// TestMain runs the tests as the user postgres, because PostgreSQL refuses to run as root; or, where it was asked to,
// one upgrade, which the test that has asked for it ends somewhere.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	if os.Getuid() != 0 {
		if os.Getenv(releaseVariable+"17") == "" {
			setReleases()
		}
		os.Exit(m.Run())
	}
	code, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// setReleases finds the versions, which takes root the first time.
func setReleases() {
	for _, major := range majors {
		found, err := releases.Programs(context.Background(), major)
		if err != nil {
			found = "not here: " + err.Error()
		}
		_ = os.Setenv(releaseVariable+strconv.Itoa(major), found)
	}
}

// again runs a copy of this program, which any user may read, as postgres.
func again() (code int, err error) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return 0, fmt.Errorf("the user postgres is missing (Debian package postgresql): %w", err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	folder, err := os.MkdirTemp("/tmp", "toban-upgrade-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := os.Chown(folder, uid, gid); err != nil {
		return 0, err
	}
	program := filepath.Join(folder, "tests")
	if err := copyFile(os.Args[0], program); err != nil {
		return 0, err
	}
	setReleases()
	cmd := exec.Command(program, arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+folder, "USER=postgres", "TMPDIR="+folder)
	for variable, size := range map[string]string{reflinksVariable: "3G", smallVariable: "400M"} {
		mounted, unmount, err := fileSystem(folder, variable, size, uid, gid)
		if err != nil {
			fmt.Fprintln(os.Stderr, "without a file system of its own:", err)
			continue
		}
		defer unmount()
		cmd.Env = append(cmd.Env, variable+"="+mounted)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // the death signal is sent when the thread ends
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// fileSystem makes and mounts one with reflinks.
func fileSystem(folder, name, size string, uid, gid int) (mounted string, unmount func(), err error) {
	image, mounted := filepath.Join(folder, name+".xfs"), filepath.Join(folder, name)
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
	return mounted, unmount, os.Chown(mounted, uid, gid)
}

// arguments are those of this program, but for files in go test's private folder.
func arguments() []string {
	var args []string
	for _, arg := range os.Args[1:] {
		if !strings.HasPrefix(arg, "-test.testlogfile") {
			args = append(args, arg)
		}
	}
	return args
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

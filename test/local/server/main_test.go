// Package server_test runs real PostgreSQL servers through internal/postgres,
// without agents: what failover is made of, one by one.
package server_test

import (
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
)

// cisVariable has the text of docs/cis.md.
const cisVariable = "TOBAN_TEST_CIS"

// TestMain runs the tests as the user postgres: the servers are started by this
// process itself, and PostgreSQL refuses to run as root.
func TestMain(m *testing.M) {
	if text, err := os.ReadFile("../../../docs/cis.md"); err == nil {
		_ = os.Setenv(cisVariable, string(text))
	}
	if os.Getuid() != 0 {
		os.Exit(m.Run())
	}
	code, err := again()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// again runs a copy of this program, which any user may read, as postgres.
func again() (int, error) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return 0, fmt.Errorf("the user postgres is missing (Debian package postgresql): %w", err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	folder, err := os.MkdirTemp("/tmp", "toban-server-")
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
	cmd := exec.Command(program, arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HOME="+folder, "USER=postgres", "TMPDIR="+folder)
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

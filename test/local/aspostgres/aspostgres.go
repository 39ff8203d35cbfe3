// Package aspostgres runs the tests of a package as the user postgres: they start PostgreSQL's servers by themselves,
// and those refuse to run as root.
package aspostgres

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

// Home is the folder in which a copy of the tests runs, and whose it is.
type Home struct {
	Folder   string
	UID, GID int
}

// Run is for a TestMain. Where the process is root it runs a copy of this program, which any user may read, as
// postgres, and returns how that has ended; else it runs the tests. Before the copy runs, prepare does what takes
// root: it returns more environment, and what is to be done at the end. It may be nil.
func Run(m *testing.M, prepare func(Home) (environment []string, end func(), err error)) int {
	if os.Getuid() != 0 {
		return m.Run()
	}
	code, err := again(prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func again(prepare func(Home) ([]string, func(), error)) (int, error) {
	home, err := newHome()
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(home.Folder) }()
	program := filepath.Join(home.Folder, "tests")
	if err := copyFile(os.Args[0], program); err != nil {
		return 0, err
	}
	cmd := exec.Command(program, arguments()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = home.Folder, os.Stdout, os.Stderr
	if prepare != nil {
		more, end, err := prepare(home)
		defer end()
		if err != nil {
			return 0, err
		}
		cmd.Env = more
	}
	cmd.Env = append(os.Environ(), append(cmd.Env, "HOME="+home.Folder, "USER=postgres", "TMPDIR="+home.Folder)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(home.UID), Gid: uint32(home.GID)}, Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // the death signal is sent when the thread ends
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return 0, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// newHome makes a folder for the user postgres. Its name is short, because sockets are in it.
func newHome() (Home, error) {
	owner, err := user.Lookup("postgres")
	if err != nil {
		return Home{}, fmt.Errorf("the user postgres is missing (Debian package postgresql): %w", err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	folder, err := os.MkdirTemp("", "toban-tests-")
	if err != nil {
		return Home{}, err
	}
	if err := os.Chown(folder, uid, gid); err != nil {
		return Home{}, errors.Join(err, os.RemoveAll(folder))
	}
	return Home{folder, uid, gid}, nil
}

// releaseVariable has the folder of a PostgreSQL's programs by its major version, or why it is not there.
const releaseVariable = "TOBAN_TEST_POSTGRESQL_"

// FindReleases finds versions of PostgreSQL, which takes root the first time, for this process and its copy.
func FindReleases(majors ...int) {
	for _, major := range majors {
		variable := releaseVariable + strconv.Itoa(major)
		if os.Getenv(variable) != "" {
			continue
		}
		found, err := releases.Programs(context.Background(), major)
		if err != nil {
			found = "not here: " + err.Error()
		}
		_ = os.Setenv(variable, found)
	}
}

// Release is the folder of a version's programs, or why it is not there.
func Release(major int) string { return os.Getenv(releaseVariable + strconv.Itoa(major)) }

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

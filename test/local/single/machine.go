package single

import (
	"os"
	"os/user"
	"strconv"
	"syscall"
	"testing"

	"toban.dev/internal/postgres"
)

// User is who the servers of a test run as: PostgreSQL refuses to run as root. It is nil where the test is not root.
func User(t testing.TB) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	must(t, err)
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	must(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Major is the newest PostgreSQL version that is installed.
func Major(t testing.TB) int {
	t.Helper()
	for major := 18; major >= 15; major-- {
		if _, err := postgres.FindPrograms(t.Context(), major); err == nil {
			return major
		}
	}
	t.Fatal("no PostgreSQL server is installed: apt-get install postgresql")
	return 0
}

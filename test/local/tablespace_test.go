package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// atOnePath has the agents' volumes at the same path, and lets none see another's processes, as in Pods.
func (c *cluster) atOnePath(name string, cmd *exec.Cmd) {
	as, own, shared := cmd.SysProcAttr.Credential, filepath.Join(c.folder, name, "volume"), c.sharedPath()
	const bind = `mount --bind "$0" "$1" && shift && exec setpriv "$@"`
	args := []string{
		"--mount", "--mount-proc", "--pid", "--fork", "--kill-child", "sh", "-c", bind, own, shared,
		"--reuid", strconv.Itoa(int(as.Uid)), "--regid", strconv.Itoa(int(as.Gid)), "--clear-groups", cmd.Path,
	}
	for _, arg := range cmd.Args[1:] {
		args = append(args, strings.Replace(arg, own, shared, 1))
	}
	behind := exec.Command("unshare", args...)
	behind.Env, behind.SysProcAttr = cmd.Env, &syscall.SysProcAttr{Setpgid: true}
	*cmd = *behind
}

// sharedPath is where they have them.
func (c *cluster) sharedPath() string { return filepath.Join(c.folder, "pgdata") }

// A tablespace that somebody makes on the primary gets its folder on each standby, and they go on.
func TestATablespaceReachesTheStandbys(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	const fast = "tablespaces/fast"
	if err := os.MkdirAll(c.sharedPath(), 0o700); err != nil {
		t.Fatal(err)
	}
	c.own(c.sharedPath())
	c.wrap = c.atOnePath
	c.form()
	if err := os.MkdirAll(filepath.Join(c.folder, "db-0/volume", fast), 0o700); err != nil {
		t.Fatal(err)
	}
	c.own(filepath.Join(c.folder, "db-0/volume/tablespaces"))
	c.own(filepath.Join(c.folder, "db-0/volume", fast))
	c.exec("db-0", "create tablespace fast location '"+filepath.Join(c.sharedPath(), fast)+"'",
		"create table there (n int) tablespace fast", "insert into there select generate_series(1, 1000)")
	for _, name := range []string{"db-1", "db-2"} {
		c.await(name, "streaming", streaming)
		c.awaitQuery(name, "select count(*)::text from there", "1000")
	}
	said := c.logs["db-1"].String() + c.logs["db-2"].String()
	if copies := strings.Count(said, "pg_basebackup: base backup completed"); copies != 2 {
		t.Errorf("the standbys were copied %d times, and not once each", copies)
	}
	c.kill("db-0", syscall.SIGKILL)
	c.awaitWrite()
	for _, name := range []string{"db-1", "db-2"} {
		if s, err := c.status(name); err == nil && primary(s) {
			c.exec(name, "insert into there values (0)")
			return
		}
	}
	t.Error("nobody leads")
}

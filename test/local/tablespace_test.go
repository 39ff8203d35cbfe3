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

// behindMount has an agent run with a folder of its own in the place of a shared one, as each Pod has its own files.
func behindMount(cmd *exec.Cmd, folder string) {
	as := cmd.SysProcAttr.Credential
	args := append([]string{"--mount", "sh", "-c", `mount -t tmpfs none "$0" && chmod 777 "$0" && exec setpriv "$@"`,
		folder, "--reuid", strconv.Itoa(int(as.Uid)), "--regid", strconv.Itoa(int(as.Gid)), "--clear-groups"}, cmd.Path)
	args = append(args, cmd.Args[1:]...)
	behind := exec.Command("unshare", args...)
	behind.Env, behind.SysProcAttr = cmd.Env, &syscall.SysProcAttr{Setpgid: true}
	*cmd = *behind
}

// A tablespace that somebody makes on the primary gets its folder on each standby, and they go on.
func TestATablespaceReachesTheStandbys(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	spaces := filepath.Join(c.folder, "spaces")
	if err := os.MkdirAll(filepath.Join(spaces, "fast"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.own(spaces)
	c.own(filepath.Join(spaces, "fast"))
	c.wrap = func(name string, cmd *exec.Cmd) {
		if name != "db-0" {
			behindMount(cmd, spaces)
		}
	}
	c.form()
	c.exec("db-0", "create tablespace fast location '"+filepath.Join(spaces, "fast")+"'",
		"create table there (n int) tablespace fast", "insert into there select generate_series(1, 1000)")
	for _, name := range []string{"db-1", "db-2"} {
		c.await(name, "streaming", streaming)
		c.awaitQuery(name, "select count(*)::text from there", "1000")
	}
	if copies := strings.Count(c.logs["db-1"].String()+c.logs["db-2"].String(), "pg_basebackup: base backup completed"); copies != 2 {
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

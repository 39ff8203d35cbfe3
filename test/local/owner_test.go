package local

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// second is what another agent of db-0 is called here, which has an address and a folder in memory of its own.
const second = "second"

// secondAgent prepares an agent on the volume of db-0.
func (c *cluster) secondAgent() *exec.Cmd {
	c.Helper()
	run := filepath.Join(c.folder, second, "run")
	c.must(os.MkdirAll(run, 0o700))
	c.own(run)
	c.own(filepath.Dir(run))
	return c.agent("db-0", c.secondHost(), run)
}

func (c *cluster) secondHost() string { return c.host(100) }

// inAPod has an agent run as in a Pod: it is process 1, and sees no process of others.
func inAPod(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to hide processes from each other")
	}
	who := cmd.SysProcAttr.Credential
	script := fmt.Sprintf(`mount --make-rprivate / && mount -t proc proc /proc &&
		exec setpriv --reuid %d --regid %d --clear-groups -- "$@"`, who.Uid, who.Gid)
	hidden := exec.Command("sh", append([]string{"-c", script, "sh"}, cmd.Args...)...)
	hidden.Env = cmd.Env
	hidden.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	return hidden
}

// awaitProbe waits until the readiness probe of the second agent has an answer with some words; "ok" when it is ready.
func (c *cluster) awaitProbe(words string) {
	c.Helper()
	body := ""
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		response, err := http.Get(fmt.Sprintf("http://%s:%d/readyz", //nolint:noctx // it ends with the test
			c.secondHost(), naming.PortProbe))
		if err != nil {
			continue
		}
		text, _ := io.ReadAll(response.Body)
		_ = response.Body.Close() // it was read
		if body = string(text); (response.StatusCode == http.StatusOK) == (words == "ok") &&
			strings.Contains(body, words) {
			return
		}
	}
	c.Fatalf("the readiness probe says %q, expected %q; its log:\n%s", body, words, c.logs[second])
}

// fingerprint is one of all that lies in a folder.
func (c *cluster) fingerprint(folder string) string {
	c.Helper()
	sum := sha256.New()
	c.must(filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintln(sum, path, info.ModTime().UnixNano(), string(text))
		return err
	}))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// leadsAsSecond waits until the second agent leads, and has what the first one had.
func (c *cluster) leadsAsSecond() {
	c.Helper()
	c.awaitProbe("ok")
	status, err := c.operator.Status(c.Context(), c.secondHost())
	c.must(err)
	if !primary(status) {
		c.Errorf("the second agent is %+v", status)
	}
	ctx, cancel := context.WithTimeout(c.Context(), deadline)
	defer cancel()
	conn, err := c.connectTo(ctx, c.secondHost())
	c.must(err)
	defer conn.Close(ctx)
	var rows int
	if err := conn.QueryRow(ctx, "select count(*) from t").Scan(&rows); err != nil || rows != 2 {
		c.Errorf("there are %d rows, %v", rows, err)
	}
}

// A container of an earlier Pod goes on beside the one of the Pod that has replaced it. They share a volume: the later
// one waits, touches nothing there, and says so; and goes on when the other one is killed.
func TestASecondAgentOnAVolumeWaits(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.exec("db-0", "insert into t values (2)")
	state, server := filepath.Join(c.folder, "db-0/volume/toban"), c.postmaster("db-0")
	before := c.fingerprint(state)
	c.run(second, c.secondAgent())
	c.awaitProbe("VolumeInUse: another agent")
	status, err := c.operator.Status(c.Context(), c.secondHost())
	if err != nil || status.Reason != "VolumeInUse" || status.Role != protocol.RoleNone || status.Ready {
		t.Errorf("the operator hears %+v, %v", status, err)
	}
	c.exec("db-0", "update t set n = n") // the first one is not disturbed
	if c.fingerprint(state) != before || c.postmaster("db-0") != server || !running(server) {
		t.Error("the second agent has changed something")
	}
	if log := c.logs[second].String(); !strings.Contains(log, "VolumeInUse") || strings.Contains(log, "decided") {
		t.Errorf("its log:\n%s", log)
	}
	c.kill("db-0", syscall.SIGKILL)
	c.leadsAsSecond()
	if running(server) {
		t.Error("the first server still runs")
	}
}

// The agent of a container is dead, and one process of its server is not: it hangs, and may write when it does not any
// more. An agent in another container, which can't see it, waits until it has ended.
func TestAServerWithoutItsAgentStillOwnsTheVolume(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.exec("db-0", "insert into t values (2)")
	text, err := c.query("db-0", "select pid::text from pg_stat_activity where backend_type = 'checkpointer'")
	c.must(err)
	hangs, err := strconv.Atoi(text)
	c.must(err)
	defer func() { _ = syscall.Kill(hangs, syscall.SIGKILL) }()
	c.agents["db-0"].WaitDelay = time.Second // what hangs has its log open
	agent := c.agents["db-0"].Process
	c.must(errors.Join(agent.Signal(syscall.SIGSTOP), syscall.Kill(hangs, syscall.SIGSTOP),
		syscall.Kill(c.postmaster("db-0"), syscall.SIGKILL)))
	c.kill("db-0", syscall.SIGKILL)
	state := filepath.Join(c.folder, "db-0/volume/toban")
	before := c.fingerprint(state)
	c.run(second, inAPod(t, c.secondAgent()))
	c.awaitProbe("VolumeInUse: a server or another program of another agent")
	if c.fingerprint(state) != before || !running(hangs) || strings.Contains(c.logs[second].String(), "decided") {
		t.Errorf("the second agent has begun:\n%s", c.logs[second])
	}
	c.must(syscall.Kill(hangs, syscall.SIGKILL))
	c.leadsAsSecond()
}

// The Pod of a restore into a new SampleDB that comes late, or goes on though it was deleted by
// force, waits for the instance.
func TestARestoreOnAVolumeInUseWaits(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	cmd, _, log := c.restoreCommand(protocol.RestoreSettings{
		Instance: "db-0", Major: c.config.Major, Operator: c.config.Operator,
	})
	said := filepath.Join(c.folder, "restore.log")
	file, err := os.Create(said)
	c.must(err)
	defer file.Close()
	cmd.Stdout = file
	c.must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for end := time.Now().Add(deadline); ; time.Sleep(20 * time.Millisecond) {
		if text, _ := os.ReadFile(said); strings.Contains(string(text), "the volume is in use") {
			break
		}
		if len(ended) > 0 || time.Now().After(end) {
			t.Errorf("it did not wait:\n%s", log)
			break
		}
	}
	_ = cmd.Process.Kill()
	<-ended //nolint:errcheck // it was killed: that is an error, as wanted
}

package local

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

func formed(t *testing.T, instances int) *cluster {
	t.Helper()
	c := newCluster(t, instances)
	c.form()
	return c
}

// form starts a new cluster, and gives it a table.
func (c *cluster) form() {
	c.Helper()
	names := []string{}
	for _, m := range c.config.Members {
		names = append(names, m.Name)
	}
	c.start(names...)
	for _, name := range names[1:] {
		c.await(name, "streaming", streaming)
	}
	s := c.await(names[0], "primary with all standbys", func(s protocol.Status) bool {
		return leading(s) && slices.Equal(s.Standbys, names[1:]) && slices.Equal(s.Voters, names)
	})
	c.config.SystemIdentifier = s.SystemIdentifier
	c.sync()
	for _, name := range names { // what is refused lets nobody in while it is tried
		c.await(name, "that has its config", func(s protocol.Status) bool {
			return s.Ready && slices.Contains([]string{s.ConfigRevision, s.RejectedRevision}, c.config.Revision)
		})
	}
	c.exec(names[0], "create table t (n int)", "insert into t values (1)")
	for _, name := range names[1:] {
		c.awaitQuery(name, "select count(*)::text from t", "1") // replication is not synchronous
	}
}

func TestThreeInstancesStartedAtOnceFormACluster(t *testing.T) {
	t.Parallel()
	formed(t, 3)
}

func TestPostmasterKilledComesBackWithItsData(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	old := c.postmaster("db-0")
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.await("db-0", "primary", func(s protocol.Status) bool { return primary(s) && c.postmaster("db-0") != old })
	c.awaitQuery("db-0", "select count(*)::text from t", "1")
}

// A session that computes does not notice that its postmaster is gone. It must
// neither write beside a new one nor keep it from starting.
func TestPostmasterKilledWhileASessionComputes(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	conn, err := c.connect("db-0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	busy := int(conn.PgConn().PID())
	go func() {
		_, _ = conn.Exec(context.Background(), "select count(*) from generate_series(1, 1e12) n") // killed: an error
	}()
	c.awaitQuery("db-0", fmt.Sprintf("select state from pg_stat_activity where pid = %d", busy), "active")
	old := c.postmaster("db-0")
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c.await("db-0", "primary", func(s protocol.Status) bool { return primary(s) && c.postmaster("db-0") != old })
	if running(busy) {
		t.Error("a session of the killed server is still there")
	}
	c.awaitQuery("db-0", "select count(*)::text from t", "1")
}

// A container's process ids start anew: the pid file of the server before may
// name a process that is none.
func TestPidFileThatNamesAStrangerDoesNotPreventTheStart(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.kill("db-0", syscall.SIGTERM)
	// The test itself belongs to somebody else; a process that the server's user may signal is what a thread
	// of the agent is in a Pod.
	sleeper := exec.Command("sleep", "600")
	sleeper.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	c.must(sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	stranger := fmt.Sprintf("%d\n%s/db-0/volume/data\n1\n5432\n", sleeper.Process.Pid, c.folder)
	for _, name := range []string{"volume/data/postmaster.pid", "run/.s.PGSQL.5432.lock"} {
		file := filepath.Join(c.folder, "db-0", name)
		c.must(os.WriteFile(file, []byte(stranger), 0o600))
		c.own(file)
	}
	c.start("db-0")
	c.await("db-0", "primary", primary)
}

func TestAgentKilledTakesItsPostmasterWithIt(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	postmaster := c.postmaster("db-0")
	c.kill("db-0", syscall.SIGKILL)
	for end := time.Now().Add(deadline); running(postmaster); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the postmaster outlives its agent")
		}
	}
	c.start("db-0")
	c.await("db-0", "primary", primary)
	c.awaitQuery("db-0", "select count(*)::text from t", "1")
}

func TestStopIsAShutdownWithCheckpoint(t *testing.T) {
	t.Parallel()
	c := formed(t, 2)
	log := c.logs["db-0"]
	c.kill("db-0", syscall.SIGTERM)
	if !strings.Contains(log.String(), "database system is shut down") {
		t.Errorf("the server was not shut down in order:\n%s", log)
	}
	c.start("db-0")
	c.whole()
}

func TestStandbyWhoseVolumeIsLostIsClonedAnew(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	before, err := c.status("db-1")
	if err != nil {
		t.Fatal(err)
	}
	c.kill("db-1", syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(c.folder, "db-1")); err != nil {
		t.Fatal(err)
	}
	c.start("db-1")
	after := c.await("db-1", "streaming", streaming)
	c.awaitQuery("db-1", "select count(*)::text from t", "1")
	if after.Election.Voter == before.Election.Voter {
		t.Errorf("%s has forgotten what it promised, and is still the voter %s", after.Name, after.Election.Voter)
	}
	c.whole()
}

// A primary that has lost its volume has lost its say with it: the others elect
// one of them, and it copies from there.
func TestPrimaryWhoseVolumeIsLostDoesNotStartOver(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.kill("db-0", syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(c.folder, "db-0")); err != nil {
		t.Fatal(err)
	}
	c.start("db-0")
	c.leader("db-0")
	c.await("db-0", "streaming", streaming)
	c.awaitQuery("db-0", "select count(*)::text from t", "1")
	c.whole()
}

// Of two that both count, the one that is left can't know what the other had acknowledged
// alone; without a witness nobody leads, and says why.
func TestPrimaryOfTwoWhoseVolumeIsLostWithoutAWitness(t *testing.T) {
	t.Parallel()
	c := formed(t, 2)
	c.kill("db-0", syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(c.folder, "db-0")); err != nil {
		t.Fatal(err)
	}
	c.start("db-0")
	c.await("db-1", "refusing", func(s protocol.Status) bool {
		return s.Refusal == "NoMajority" && strings.Contains(s.Message, "db-0 has lost its hard state")
	})
	s := c.await("db-0", "waiting", func(s protocol.Status) bool { return s.Data == protocol.DataEmpty })
	if s.Role != protocol.RoleNone {
		t.Errorf("it runs something: %+v", s)
	}
	c.awaitQuery("db-1", "select count(*)::text from t", "1")
}

func TestStandbyWhoseWALIsGoneIsClonedAnew(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.config.Parameters["max_slot_wal_keep_size"] = "1MB"
	c.config.Parameters["wal_keep_size"] = "0"
	c.config.Parameters["min_wal_size"] = "32MB"
	c.sync()
	c.kill("db-1", syscall.SIGTERM)
	for range 4 {
		c.exec("db-0", "insert into t select 1 from generate_series(1, 100)", "select pg_switch_wal()", "checkpoint")
	}
	c.start("db-1")
	c.await("db-1", "streaming", streaming)
	c.awaitQuery("db-1", "select count(*)::text from t", "401")
	if log := c.logs["db-1"].String(); !strings.Contains(log, "WALRemoved") {
		t.Errorf("the standby was not cloned for the reason expected:\n%s", log)
	}
}

func TestRemovedInstanceHasNoSay(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.config.Members = c.config.Members[:2]
	c.sync()
	c.await("db-0", "without it as voter",
		func(s protocol.Status) bool { return leading(s) && slices.Equal(s.Voters, []string{"db-0", "db-1"}) })
	c.kill("db-2", syscall.SIGTERM)
	c.awaitQuery("db-0", "select count(*)::text from pg_replication_slots", "1")
	c.exec("db-0", "insert into t values (2)")
}

// The Secret of a deleted SampleDB may be mounted for a moment when one of the
// same name is made.
func TestAgentWithTheAuthorityOfAFormerClusterEnds(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	other, err := pki.NewAuthority(bytes.Repeat([]byte{8}, 32), "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.config.Authority = string(other.CertPEM())
	c.start("db-0")
	cmd := c.agents["db-0"]
	delete(c.agents, "db-0")
	if err := cmd.Wait(); err == nil || !strings.Contains(c.logs["db-0"].String(), "former SampleDB") {
		t.Errorf("the agent ended with %v and said:\n%s", err, c.logs["db-0"])
	}
}

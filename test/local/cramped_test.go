package local

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// cramped is a cluster of three of which db-1 has stopped, lacks WAL that the leader has removed, and has no room
// for a copy beside its data.
func cramped(t *testing.T) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a small volume")
	}
	t.Parallel()
	c := newCluster(t, 3)
	c.config.Parameters["min_wal_size"], c.config.Parameters["max_wal_size"] = "32MB", "32MB"
	c.smallVolume(filepath.Join(c.folder, "db-1/volume"), "190m")
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	c.whole()
	c.exec("db-0", "create table t as select repeat('x', 1000) as x from generate_series(1, 60000)", "checkpoint")
	c.whole()
	// It has replayed that: what it had still to replay would need room before it asks for WAL that is gone.
	c.awaitQuery("db-1", "select count(*)::text from t", "60000")
	c.config.Parameters["max_slot_wal_keep_size"], c.config.Parameters["wal_keep_size"] = "32MB", "0"
	c.sync()
	c.kill("db-1", syscall.SIGTERM)
	for range 4 {
		c.exec(c.leader("db-1"), "insert into t select 'y' from generate_series(1, 100)", "select pg_switch_wal()")
		// db-2 has it before the checkpoint: it is db-1 alone that shall lack WAL.
		c.awaitQuery(c.leader("db-1"), `select count(*)::text from pg_stat_replication
			where flush_lsn >= pg_current_wal_flush_lsn()`, "1")
		c.exec(c.leader("db-1"), "checkpoint")
	}
	// Every copy begins with a switch of WAL: two that are copied would take it from each other.
	c.config.Parameters["max_slot_wal_keep_size"] = "1GB"
	c.sync()
	return c
}

// mended waits until db-1 has been copied anew.
func (c *cluster) mended() {
	c.Helper()
	c.await("db-1", "streaming", streaming)
	c.awaitQuery("db-1", "select count(*)::text from t", "60400")
	if log := c.logs["db-1"].String(); !strings.Contains(log, "WALRemoved") ||
		!strings.Contains(log, "gives up its data") {
		c.Errorf("the standby was not copied for the reason expected:\n%s", log)
	}
}

// hasData fails where an instance has no data any more.
func (c *cluster) hasData(name string) {
	c.Helper()
	data := postgres.DataDirectory{Volume: filepath.Join(c.folder, name, "volume")}
	if has, err := data.HasData(); err != nil || !has {
		c.Errorf("%s has no data any more: %v", name, err)
	}
}

// awaitLog waits until an instance has logged something so often.
func (c *cluster) awaitLog(name, text string, times int) {
	c.Helper()
	for end := time.Now().Add(deadline); strings.Count(c.logs[name].String(),
		text) < times; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("%s has not logged %q %d times", name, text, times)
		}
	}
}

// A standby whose copy does not fit beside what it has gives that up for the copy.
func TestAVolumeWithoutRoomForTwoCopies(t *testing.T) {
	c := cramped(t)
	c.startOne("db-1")
	c.mended()
}

// The same, and its volume has no room even for the beginning of a copy.
func TestAVolumeThatIsFull(t *testing.T) {
	c := cramped(t)
	filling := c.fill(filepath.Join(c.folder, "db-1/volume"))
	c.startOne("db-1")
	c.awaitLog("db-1", "gives up its data", 1)
	c.must(os.Remove(filling))
	c.mended()
}

// Nobody gives up data for a copy that does not come: here the leader lets nobody in who wants its WAL or its data.
func TestACopyThatCannotBeginCostsNoData(t *testing.T) {
	c := cramped(t)
	leader := c.leader("db-1")
	c.exec(leader, "alter role toban_replication nologin")
	c.startOne("db-1")
	c.awaitLog("db-1", "pg_basebackup: error: connection to server", 3)
	c.hasData("db-1")
	c.exec(leader, "alter role toban_replication login")
	c.mended()
}

// Nobody gives up data that is needed: acknowledged commits would be on the leader's disk alone, while
// the third instance is away.
func TestDataThatOthersNeedIsNotGivenUp(t *testing.T) {
	c := cramped(t)
	c.kill("db-2", syscall.SIGTERM)
	c.startOne("db-1")
	s := c.await("db-1", "waiting", func(s protocol.Status) bool { return s.Reason == "DataNeeded" })
	if !strings.Contains(s.Message, "db-2 does not answer") || !strings.Contains(s.Message, "enlarge") {
		t.Errorf("it says %q", s.Message)
	}
	c.hasData("db-1")
	c.startOne("db-2")
	c.mended()
	c.whole()
}

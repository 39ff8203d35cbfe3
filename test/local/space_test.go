package local

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// handOver has the leader hand over to another instance.
func (c *cluster) handOver(from, to string) {
	c.Helper()
	ordinal, _ := naming.Ordinal(from)
	if _, err := c.operator.Switchover(c.Context(), c.host(ordinal),
		protocol.Switchover{To: to, Reason: "test"}); err != nil {
		c.Fatal(err)
	}
	c.await(to, "leading", leading)
}

// walFiles are how many WAL files an instance has for each segment, at most.
func (c *cluster) walFiles(name string) int {
	c.Helper()
	entries, err := os.ReadDir(filepath.Join(c.folder, name, "volume/data/pg_wal"))
	c.must(err)
	counts, most := map[string]int{}, 0
	for _, entry := range entries {
		if n := entry.Name(); len(n) == 24 {
			counts[n[8:]]++
			most = max(most, counts[n[8:]])
		}
	}
	return most
}

// Each promotion leaves a file of 16 MB that nobody needs once all have followed: with many
// promotions and few writes they would fill the volume.
func TestManyPromotionsLeaveOneWALFileOfEachSegment(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.leader()
	for _, next := range []string{"db-1", "db-2", "db-0", "db-1"} {
		if next != leader {
			c.handOver(leader, next)
			leader = next
		}
		c.whole()
	}
	for _, name := range c.names() {
		for end := time.Now().Add(deadline); c.walFiles(name) > 1; time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s has %d WAL files of a segment", name, c.walFiles(name))
			}
		}
	}
	// What one needs that is away is kept: it comes back without a new copy.
	away := "db-0"
	if leader == away {
		t.Fatal("the leader is to be another")
	}
	c.kill(away, syscall.SIGKILL)
	for _, next := range []string{"db-2", "db-1"} {
		c.handOver(leader, next)
		leader = next
		c.exec(leader, "insert into t values (2)")
	}
	// Where all stream for this long, it would be removed.
	const long = "select (clock_timestamp() - min(backend_start) > '4 s')::text from pg_stat_replication"
	c.awaitQuery(leader, long, "true")
	c.startOne(away)
	c.whole()
	if log := c.logs[away].String(); strings.Contains(log, "pg_basebackup") {
		t.Errorf("%s was copied anew:\n%s", away, log)
	}
}

// smallVolume makes a volume of a size.
func (c *cluster) smallVolume(path, size string) {
	c.Helper()
	c.must(os.MkdirAll(path, 0o700))
	c.must(unix.Mount("tmpfs", path, "tmpfs", 0, "size="+size))
	c.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
}

// A standby whose server can't even start is copied anew, once.
func TestAStandbyThatCannotStartIsCopiedAnewOnce(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.kill("db-1", syscall.SIGTERM)
	label := "START WAL LOCATION: 9/99000028 (file 000000010000000900000099)\nCHECKPOINT LOCATION: " +
		"9/99000060\nBACKUP METHOD: streamed\n" +
		"BACKUP FROM: standby\nSTART TIME: 2026-11-21 03:00:00 UTC\nLABEL: nothing\nSTART TIMELINE: 1\n"
	file := filepath.Join(c.folder, "db-1/volume/data/backup_label")
	c.must(os.WriteFile(file, []byte(label), 0o600))
	c.own(file)
	c.startOne("db-1")
	c.await("db-1", "streaming", streaming)
	leader := c.whole()
	c.exec(leader, "create table later ()")
	c.awaitCaughtUp(leader, "db-1")
	copies := func() int { return strings.Count(c.logs["db-1"].String(), "pg_basebackup: base backup completed") }
	if n := copies(); n != 1 {
		t.Errorf("it was copied %d times:\n%s", n, c.logs["db-1"])
	}
	c.kill("db-1", syscall.SIGTERM)
	c.startOne("db-1") // with a log of its own
	c.await("db-1", "streaming", streaming)
	if copies() != 0 {
		t.Errorf("it was copied again after a restart:\n%s", c.logs["db-1"])
	}
}

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
	"toban.dev/test/outside"
)

// apart is a cluster whose instances have their WAL on volumes of their own.
func apart(t *testing.T, instances int) *cluster {
	t.Helper()
	c := newCluster(t, instances)
	c.apart = true
	return c
}

// walFolder is where the WAL of an instance is, which must be on its WAL volume, and there alone.
func (c *cluster) walFolder(name string) string {
	c.Helper()
	folder, err := postgres.WALFolder(filepath.Join(c.disk(name), "data"))
	if err != nil || filepath.Dir(folder) != c.walDisk(name) {
		c.Fatalf("the WAL of %s is in %q, %v", name, folder, err)
	}
	if segments, _ := filepath.Glob(filepath.Join(folder, "0000000*")); len(segments) == 0 {
		c.Errorf("%s has no WAL in %s", name, folder)
	}
	if folders, _ := filepath.Glob(filepath.Join(c.walDisk(name), "wal-*")); len(folders) != 1 {
		c.Errorf("the WAL volume of %s has %q", name, folders)
	}
	return folder
}

// New data, copies, and what was rewound have their WAL on the WAL volume. Who has lost that has lost its data, and is
// another voter.
func TestWALOnAVolumeOfItsOwn(t *testing.T) {
	t.Parallel()
	c := apart(t, 3)
	c.form()
	leader := c.whole()
	for _, name := range c.names() {
		c.walFolder(name)
	}
	w := c.write3()
	w.goesOn()
	before := c.walFolder(leader)
	c.kill(leader, syscall.SIGKILL)
	next := c.leader(leader)
	w.goesOn()
	c.start(leader)
	c.await(leader, "streaming", streaming)
	copied := strings.Contains(c.logs[leader].String(), "base backup completed")
	if now := c.walFolder(leader); now != before && !copied {
		t.Errorf("the WAL of %s is in %s, before in %s, and it was not copied", leader, now, before)
	}
	was, err := c.status(leader)
	c.must(err)
	c.kill(leader, syscall.SIGKILL)
	c.must(os.RemoveAll(c.walDisk(leader)))
	c.start(leader)
	now := c.await(leader, "streaming", streaming)
	if now.Election.Voter == was.Election.Voter {
		t.Errorf("%s has lost its WAL, and is still the voter %s", leader, now.Election.Voter)
	}
	if c.walFolder(leader) == before {
		t.Error("the WAL is in the folder that was lost")
	}
	c.awaitQuery(leader, "select count(*)::text from t", "1")
	w.goesOn()
	if now := c.whole(); now != next {
		t.Errorf("%s leads, before %s did", now, next)
	}
	w.check(outside.Lost)
}

// An instance whose WAL volume is not given does not start, and says why; nothing of it is touched. One with data from
// before it had a WAL volume has its WAL moved there.
func TestAWALVolumeThatComesAndIsNotGiven(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.exec("db-0", "create table kept as select 7 as n")
	c.kill("db-0", syscall.SIGKILL) // it has WAL to replay
	c.apart = true
	c.start("db-0")
	c.await("db-0", "primary", primary)
	c.walFolder("db-0")
	c.awaitQuery("db-0", "select n::text from kept", "7")
	c.kill("db-0", syscall.SIGTERM)
	c.apart = false
	c.start("db-0")
	said := filepath.Join(c.folder, "db-0", "last-words")
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(said)
		if strings.Contains(string(text), postgres.ErrWALElsewhere.Error()) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it says %q", text)
		}
	}
	c.kill("db-0", syscall.SIGKILL)
	c.apart = true
	c.start("db-0")
	c.await("db-0", "primary", primary)
	c.awaitQuery("db-0", "select n::text from kept", "7")
}

// Somebody fills the WAL volume of the primary. It takes no writes before that is full, says for which volume, and goes
// on by itself when there is room; nothing ends, and nobody else is elected.
func TestAWALVolumeThatGetsFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a small volume")
	}
	t.Parallel()
	c := apart(t, 3)
	c.config.Parameters["min_wal_size"], c.config.Parameters["max_wal_size"] = "32MB", "64MB"
	for _, name := range c.names() {
		c.smallVolume(c.walDisk(name), "512m")
	}
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	leader := c.whole()
	c.exec(leader, "create role app login password 'app'", "create database app owner app")
	c.mustApp(leader, "create table few (n int)")
	before := c.postmaster(leader)
	filling := c.fill(c.walDisk(leader))
	c.refused(leader)
	// A volume of this size takes writes again from 208 MiB on. Checkpoints and the reserve give some of that back.
	s := c.await(leader, "one that names the WAL volume", func(s protocol.Status) bool {
		return s.SparesWAL && s.WALRoom != nil && s.WALRoom.Size-s.WALRoom.Used < 208<<20
	})
	if s.Room == nil || s.Room.Size == s.WALRoom.Size {
		t.Errorf("the room is %+v and %+v", s.Room, s.WALRoom)
	}
	c.must(os.Remove(filling))
	c.await(leader, "a primary that takes writes", func(s protocol.Status) bool {
		return primary(s) && !s.ReadOnly && !s.SparesWAL
	})
	c.mustApp(leader, "insert into few values (1)")
	for end := time.Now().Add(deadline); ; time.Sleep(100 * time.Millisecond) {
		held, err := os.Stat(filepath.Join(c.walDisk(leader), "toban", "reserve"))
		if err == nil && held.Size() == 32<<20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("there is no reserve again: %v", err)
		}
	}
	if now := c.postmaster(leader); now != before {
		t.Errorf("the server was started again: %d, before %d", now, before)
	}
	if now := c.whole(); now != leader {
		t.Errorf("%s leads, before %s did", now, leader)
	}
}

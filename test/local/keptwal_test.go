package local

import (
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// writeSegments makes so many segments of WAL, and a checkpoint after each.
func (c *cluster) writeSegments(leader string, segments int) {
	c.Helper()
	for range segments {
		c.exec(leader, "insert into t values (7)", "select pg_switch_wal()", "checkpoint")
	}
}

// awaitKept waits until the leader says that it keeps much WAL for exactly these slots, and with what limit.
func (c *cluster) awaitKept(leader string, limit int64, want ...string) protocol.KeptWAL {
	c.Helper()
	slices.Sort(want)
	return *c.await(leader, "keeping WAL as expected", func(s protocol.Status) bool {
		var names []string
		if s.KeptWAL != nil {
			for _, slot := range s.KeptWAL.Slots {
				names = append(names, slot.Name)
			}
		}
		slices.Sort(names)
		return s.KeptWAL != nil && s.KeptWAL.Limit == limit && slices.Equal(names, want)
	}).KeptWAL
}

// The archive, an instance and an application's slot keep WAL: the leader's agent names each of them. Beyond the limit
// they keep no more, and a slot of an application is lost.
func TestForWhomWALIsKept(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	for name, value := range smallWAL(1 << 10) {
		c.config.Parameters[name] = value
	}
	c.sync()
	leader := c.leader()
	c.awaitArchived(leader)
	c.awaitKept(leader, 1<<30)
	standby := c.standby(leader)
	c.kill(standby, syscall.SIGTERM)
	c.exec(leader, "select pg_create_physical_replication_slot('mine', true)")
	back := c.storeAway(folder)
	c.writeSegments(leader, 4)
	all := []string{"mine", naming.Slot(standby), naming.SlotArchive}
	kept := c.awaitKept(leader, 1<<30, all...)
	t.Logf("it says %+v", kept)
	for _, slot := range kept.Slots {
		if slot.Bytes < 32<<20 || slot.Bytes > 160<<20 || slot.Active && slot.Name != naming.SlotArchive {
			t.Errorf("it says %+v after four segments", slot)
		}
	}
	c.exec(leader, "select pg_drop_replication_slot('mine')")
	c.awaitKept(leader, 1<<30, all[1:]...)

	const limit = 96
	c.exec(leader, "select pg_create_physical_replication_slot('mine', true)")
	c.config.Parameters["max_slot_wal_keep_size"] = strconv.Itoa(limit) + "MB"
	c.sync()
	c.awaitQuery(leader, "select setting from pg_settings where name = 'max_slot_wal_keep_size'", strconv.Itoa(limit))
	for range 12 {
		c.writeSegments(leader, 1)
		text, err := c.query(leader, "select (sum(size)::bigint >> 20)::text from pg_ls_waldir()")
		c.must(err)
		// The distance between two checkpoints, what is recycled, and the present segment come to the limit.
		if size, err := strconv.Atoi(text); err != nil || size > limit+96 {
			t.Errorf("pg_wal has %s MiB, the limit is %d", text, limit)
		}
	}
	c.awaitQuery(leader, "select wal_status from pg_replication_slots where slot_name = 'mine'", "lost")
	c.await(leader, "with nothing beyond the limit", func(s protocol.Status) bool {
		return s.KeptWAL != nil && s.KeptWAL.Limit == limit<<20 && !slices.ContainsFunc(s.KeptWAL.Slots,
			func(slot protocol.Slot) bool { return slot.Name == "mine" || slot.Bytes > (limit+32)<<20 })
	})
	back()
	c.startOne(standby)
	c.await(standby, "streaming", streaming)
	c.await(leader, "with a gap", func(s protocol.Status) bool { return s.Archive.Gap != "" && s.Archive.Reason == "" })
	c.awaitKept(leader, limit<<20)
}

// storeAway has a file in the place of the folder of a store, where nothing can be read or written, until it is told to
// have the folder back. Both change places at once: a store that has nothing for a moment is another matter.
func (c *cluster) storeAway(folder string) (back func()) {
	c.Helper()
	away := folder + ".away"
	c.must(os.WriteFile(away, nil, 0o600))
	swap := func() { c.must(unix.Renameat2(unix.AT_FDCWD, away, unix.AT_FDCWD, folder, unix.RENAME_EXCHANGE)) }
	swap()
	return func() {
		swap()
		c.must(os.Remove(away))
	}
}

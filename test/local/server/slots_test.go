package server_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/postgres"
	"toban.dev/test/local/aspostgres"
)

// The archiver and what tends the server make the same slot, each in a session of its own.
func TestTwoMakeTheSameSlotAtOnce(t *testing.T) {
	n, _ := pair(t, 0)
	one, other := n.session(), n.session()
	defer one.Close()
	defer other.Close()
	for range 50 {
		var both errgroup.Group
		both.Go(func() error { return one.EnsureSlot(t.Context(), "toban_archive") })
		both.Go(func() error { return other.EnsureSlots(t.Context(), []string{"toban_archive"}) })
		must(n, both.Wait())
		must(n, one.EnsureSlots(t.Context(), nil))
	}
}

// nodesOf are servers of a major version; the test is skipped where that is not here.
func nodesOf(t *testing.T, n, major int) []*node {
	t.Helper()
	bin := aspostgres.Release(major)
	if !filepath.IsAbs(bin) {
		t.Skip(bin)
	}
	all := nodes(t, n)
	for _, n := range all {
		n.Programs = postgres.Programs{Dir: bin, Major: major}
	}
	return all
}

// PostgreSQL 18 and later send no WAL by a slot that is lost: a copy makes another one in its place. Slots keep so
// little here that one which had been made before the copy would be lost by the checkpoint that it begins with.
func TestACopyMakesItsSlotAnewThatIsLost(t *testing.T) {
	for _, major := range []int{17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			all := nodesOf(t, 2, major)
			primary, copying := all[0], all[1]
			primary.found()
			primary.slots(copying)
			primary.settings.Parameters["max_slot_wal_keep_size"] = "1MB"
			primary.configure()
			primary.eventually("its slot is lost", func() bool {
				primary.do("create table if not exists t (n int); insert into t values (1)")
				primary.do("select pg_switch_wal()")
				primary.do("checkpoint")
				return primary.ask("select wal_status from pg_replication_slots") == "lost"
			})
			must(t, copying.Clone(within(t, deadline), copying.upstream(primary, 0), never, copying.log))
			copying.follow(primary, 1)
			copying.streams()
			if major > 17 && primary.ask("select wal_status from pg_replication_slots") == "lost" {
				t.Error("it follows by a slot that is lost")
			}
		})
	}
}

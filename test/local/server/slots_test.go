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

// slotsOf says of each slot of ours whether it keeps WAL and whether somebody uses it.
func slotsOf(n *node) string {
	return n.ask(`select coalesce(string_agg(slot_name || case when restart_lsn is null then '' else ' keeps' end
		|| case when active then ' used' else '' end, ', ' order by slot_name), '') from pg_replication_slots`)
}

// A standby has the slots ready that it will need as a primary, and keeps no WAL by them. Who follows it while it is
// still a standby streams on when it is promoted, without another connection, and acknowledges the first commit. Who
// has not come has its WAL kept from then on.
func TestWhoFollowsAStandbyStreamsOnWhenItIsPromoted(t *testing.T) {
	for _, major := range []int{17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			all := nodesOf(t, 3, major)
			former, elected, follower := all[0], all[1], all[2]
			former.found()
			for _, s := range all[1:] {
				s.patient = true
				s.clone(former)
				s.follow(former, 1)
				s.streams()
			}
			session := elected.session()
			defer session.Close()
			prepare := func(want string) {
				t.Helper()
				must(t, session.PrepareSlots(t.Context(), []string{"toban_archive"},
					[]string{former.slot, follower.slot}))
				if got := slotsOf(elected); got != want {
					t.Fatalf("the slots are %q, want %q", got, want)
				}
			}
			unused := "toban_archive keeps, toban_db_0, toban_db_2"
			must(t, session.EnsureSlot(t.Context(), "toban_gone"))
			must(t, session.EnsureSlot(t.Context(), former.slot))
			prepare(unused) // what it had as a primary, and what nobody is to have, is gone
			prepare(unused)

			former.do("create table t (n int)")
			former.stop(postgres.StopFast)
			elected.follow(nil, 0)
			follower.follow(elected, 2)
			follower.streams()
			prepare("toban_archive keeps, toban_db_0, toban_db_2 keeps used")
			receiver := follower.ask("select pid from pg_stat_wal_receiver")

			elected.settings.Synchronous = `ANY 1 ("` + follower.name + `")`
			elected.settings.Standby, elected.settings.Upstream = false, nil
			must(t, elected.Configure(elected.settings))
			must(t, elected.process.Reload())
			must(t, session.Promote(within(t, deadline)))
			elected.do("insert into t values (1)") // it waits for who follows
			if now := follower.ask("select pid from pg_stat_wal_receiver"); now != receiver {
				t.Errorf("it has connected anew: process %s, before %s", now, receiver)
			}
			must(t, session.ReserveSlots(t.Context(), []string{former.slot, follower.slot, "toban_archive"}))
			if got := slotsOf(elected); got != "toban_archive keeps, toban_db_0 keeps, toban_db_2 keeps used" {
				t.Errorf("of the primary the slots are %q", got)
			}
		})
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

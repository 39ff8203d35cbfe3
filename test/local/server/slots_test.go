package server_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
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

// fileOf is an expression for the number of the WAL file that an LSN lies in.
func fileOf(lsn string) string { return "((" + lsn + " - '0/0')::bigint / 16777216)" }

// slotsOf says of each slot of ours from which WAL file on it keeps WAL, and whether somebody uses it.
func slotsOf(n *node) string {
	return n.ask("select string_agg(slot_name || ' ' || " + fileOf("restart_lsn") +
		" || case when active then ' used' else '' end, ', ' order by slot_name) from pg_replication_slots")
}

// redo is the WAL file that a server begins with where it is started again.
func redo(n *node) string {
	return n.ask("select " + fileOf("redo_lsn") + " from pg_control_checkpoint()")
}

// switchWAL begins so many WAL files.
func (n *node) switchWAL(files int) {
	n.Helper()
	for range files {
		n.do("create table if not exists t (n int); insert into t values (0)")
		n.do("select pg_switch_wal()")
	}
}

// A standby has the slots ready that it will need as a primary, and keeps by them what it keeps by itself. Who follows
// it while it is still a standby streams on when it is promoted, without another connection, and acknowledges the first
// commit. For who has not come, WAL is kept from before the promotion on: it may have to be rewound to that.
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
			first := redo(elected)
			prepare := func(members string) {
				t.Helper()
				must(t, session.PrepareSlots(t.Context(), []string{"toban_archive"},
					[]string{former.slot, follower.slot}))
				want := fmt.Sprintf("toban_archive %s, toban_db_0 %s, toban_db_2 %s", first, members, members)
				if got := slotsOf(elected); got != want {
					t.Fatalf("the slots are %q, want %q", got, want)
				}
			}
			must(t, session.EnsureSlot(t.Context(), "toban_gone"))
			prepare(first)
			former.switchWAL(3)
			former.do("checkpoint")
			elected.eventually("it has made a restartpoint", func() bool {
				elected.do("checkpoint")
				return redo(elected) != first
			})
			second := redo(elected)
			prepare(second)

			former.switchWAL(3)
			former.stop(postgres.StopFast)
			elected.follow(nil, 0)
			follower.follow(elected, 2)
			follower.streams()
			receiver := follower.ask("select pid from pg_stat_wal_receiver")
			elected.settings.Synchronous = `ANY 1 ("` + follower.name + `")`
			elected.settings.Standby, elected.settings.Upstream = false, nil
			must(t, elected.Configure(elected.settings))
			must(t, elected.process.Reload())
			must(t, session.Promote(within(t, deadline), nil))
			elected.do("insert into t values (1)") // it waits for who follows
			if now := follower.ask("select pid from pg_stat_wal_receiver"); now != receiver {
				t.Errorf("it has connected anew: process %s, before %s", now, receiver)
			}
			elected.do("checkpoint")
			must(t, session.EnsureSlots(t.Context(), []string{former.slot, follower.slot, "toban_archive"}))
			got := slotsOf(elected)
			if !strings.Contains(got, "toban_db_0 "+second+",") || !strings.HasSuffix(got, " used") {
				t.Errorf("of the primary the slots are %q, want %s for who has not come", got, second)
			}
		})
	}
}

// A slot from when the server was a primary keeps rows that its follower had told it of. As a standby it would tell its
// own primary of them for ever.
func TestAStandbysSlotsKeepNoRows(t *testing.T) {
	all := nodes(t, 2)
	primary, other := all[0], all[1]
	primary.found()
	other.clone(primary)
	other.follow(primary, 1)
	other.settings.Parameters["hot_standby_feedback"] = "on"
	must(t, other.Configure(other.settings))
	must(t, other.process.Reload())
	primary.eventually("it keeps rows", func() bool {
		return primary.ask("select xmin from pg_replication_slots") != ""
	})
	other.stop(postgres.StopFast)
	primary.stop(postgres.StopFast)
	primary.follow(nil, 0)
	standby := primary.session()
	defer standby.Close()
	must(t, standby.PrepareSlots(t.Context(), nil, []string{other.slot}))
	if kept := primary.ask("select xmin from pg_replication_slots"); kept != "" || slotsOf(primary) == "" {
		t.Errorf("it keeps rows from %s on; the slots are %q", kept, slotsOf(primary))
	}
}

// A standby that follows lets nobody follow it, and ends who did: they would be sent WAL of a leader that they may not
// have heard of.
func TestWhoFollowsLetsNobodyFollow(t *testing.T) {
	all := nodes(t, 3)
	primary, former, other := all[0], all[1], all[2]
	primary.found()
	for _, s := range all[1:] {
		s.clone(primary)
		s.follow(primary, 1)
		s.streams()
	}
	session := former.session()
	defer session.Close()
	must(t, session.PrepareSlots(t.Context(), nil, []string{other.slot}))
	former.follow(nil, 0)
	other.follow(former, 2)
	other.streams()
	former.follow(primary, 3)
	former.streams()
	if !other.state().Streaming {
		t.Fatal("it was ended before it was told to")
	}
	must(t, session.EndFollowers(t.Context()))
	other.eventually("it is refused", func() bool {
		return !other.state().Streaming &&
			strings.Contains(other.log.String(), "pg_hba.conf rejects replication connection")
	})
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

package server_test

import (
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

// Who follows a standby streams on when that is promoted, without another connection, and acknowledges the first
// commit.
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
			former.do("create table t (n int)")
			former.stop(postgres.StopFast)
			elected.follow(nil, 0)
			elected.slots(former, follower)
			follower.follow(elected, 2)
			follower.streams()
			receiver := follower.ask("select pid from pg_stat_wal_receiver")
			elected.settings.Synchronous = `ANY 1 ("` + follower.name + `")`
			elected.settings.Standby, elected.settings.Upstream = false, nil
			must(t, elected.Configure(elected.settings))
			must(t, elected.process.Reload())
			session := elected.session()
			defer session.Close()
			must(t, session.Promote(within(t, deadline), nil))
			elected.do("insert into t values (1)") // it waits for who follows
			if now := follower.ask("select pid from pg_stat_wal_receiver"); now != receiver {
				t.Errorf("it has connected anew: process %s, before %s", now, receiver)
			}
		})
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
	former.slots(other)
	former.follow(nil, 0)
	other.follow(former, 2)
	former.eventually("the other one follows it", func() bool { // which may follow the primary for a moment still
		return former.ask("select count(*) from pg_stat_replication where state = 'streaming'") == "1"
	})
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

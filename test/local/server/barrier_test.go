package server_test

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/postgres"
)

const rule = `ANY 1 ("db-1","db-2")`

// obey makes a rule the primary's and waits until it is in force.
func (n *node) obey(rule string) {
	n.Helper()
	n.settings.Synchronous = rule
	must(n, n.Configure(n.settings))
	must(n, n.process.Reload())
	n.eventually("its rule is in force",
		func() bool { return n.ask("select current_setting('synchronous_standby_names')") == rule })
}

func TestABarrierIsAcknowledgedOrAnError(t *testing.T) {
	primary, standbys := pair(t, 1)
	if err := primary.Barrier(within(t, deadline), rule); err == nil {
		t.Error("a rule that is not in force was obeyed")
	}
	must(t, primary.Barrier(within(t, deadline), ""))
	primary.obey(rule)
	begin := time.Now()
	must(t, primary.Barrier(within(t, deadline), rule))
	t.Logf("took %v", time.Since(begin))

	receiver, err := strconv.Atoi(standbys[0].ask("select pid from pg_stat_wal_receiver"))
	must(t, err)
	must(t, syscall.Kill(receiver, syscall.SIGSTOP))
	const abandoned = "nobody acknowledges"
	cancelled := func() int { return strings.Count(primary.log.String(), "due to user request") }
	for name, release := range map[string]func(giveUp func()){
		abandoned: func(giveUp func()) { giveUp() },
		"the wait is cancelled": func(func()) {
			primary.do("select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		},
		"the session is ended": func(func()) {
			primary.do("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
		},
		"the rule is taken away": func(func()) { primary.obey("") },
	} {
		t.Run(name, func(t *testing.T) {
			primary.obey(rule)
			before := cancelled()
			result := make(chan error)
			ctx, giveUp := context.WithTimeout(t.Context(), deadline)
			defer giveUp()
			go func() { result <- primary.Barrier(ctx, rule) }()
			primary.eventually("it waits", func() bool {
				return primary.ask("select count(*) from pg_stat_activity where wait_event = 'SyncRep'") != "0"
			})
			release(giveUp)
			if err := <-result; err == nil {
				t.Error("it was acknowledged by nobody")
			} else {
				t.Log(err)
			}
			primary.eventually("nobody waits any more", func() bool {
				return primary.ask("select count(*) from pg_stat_activity where wait_event = 'SyncRep'") == "0"
			})
			if name == abandoned && cancelled() > before {
				t.Error("a barrier that is given up counts as a client that cancels its commit")
			}
		})
	}
	must(t, syscall.Kill(receiver, syscall.SIGCONT))
	primary.obey(rule)
	must(t, primary.Barrier(within(t, deadline), rule))
}

func TestACloneAcknowledgesNothing(t *testing.T) {
	all := nodes(t, 2)
	primary, copying := all[0], all[1]
	primary.found()
	primary.slots(copying)
	primary.do("create table big as select i, repeat('x', 500) from generate_series(1, 20000) i")
	primary.obey(rule)
	sync := ""
	stream := func() { // while it copies, its connections are looked at
		sync = primary.ask("select string_agg(distinct application_name || ' ' || sync_state, ',') " +
			"from pg_stat_replication")
		s := primary.session()
		defer s.Close()
		if names, _, err := s.Standbys(t.Context()); err != nil || len(names) > 0 {
			t.Errorf("it passes for a standby: %v, %v", names, err)
		}
	}
	must(t, copying.Clone(within(t, deadline), copying.upstream(primary, 0), never,
		&watcher{at: map[string]func(){"starting background WAL receiver": stream}}))
	if sync != "toban-clone async" {
		t.Errorf("a clone is seen as %q", sync)
	}
}

func TestAPromotedStandbyWaitsForItsOwnStandbys(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.settings.Synchronous = `ANY 1 ("db-0")`
	must(t, standby.Configure(standby.settings))
	must(t, standby.process.Reload())
	primary.stop(postgres.StopFast)
	standby.endOfWAL()
	standby.promote()
	if err := standby.Barrier(within(t, time.Second), standby.settings.Synchronous); err == nil {
		t.Error("it commits alone")
	}
	if free, err := standby.Data.FreeSpace(); err != nil || free == 0 {
		t.Errorf("free space: %d, %v", free, err)
	}
}

// A standby that streams and acknowledges nothing holds no commit up that another one acknowledges.
func TestAStandbyThatHangsHoldsNoCommitUp(t *testing.T) {
	primary, standbys := pair(t, 2)
	primary.obey(rule)
	pid, err := strconv.Atoi(standbys[0].ask("select pid from pg_stat_wal_receiver"))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	for range 10 {
		must(t, primary.Barrier(within(t, deadline), rule))
	}
	if n := primary.ask("select count(*) from pg_stat_replication where state = 'streaming'"); n != "2" {
		t.Errorf("%s stream", n)
	}
}

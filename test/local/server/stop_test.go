package server_test

import (
	"context"
	"testing"

	"toban.dev/internal/postgres"
)

// A primary whose standbys are gone stops in order. One session has a temporary table. It removes that as it ends, and
// waits for a standby then; no signal ends it. Another one waits with its client, which is not told that its commit is
// safe.
func TestAStopDoesNotWaitForStandbysThatAreGone(t *testing.T) {
	n := nodes(t, 1)[0]
	n.found()
	n.do("create table kept (id int)")
	leaves, waits := n.dial(), n.dial()
	defer leaves.Close(context.Background())
	defer waits.Close(context.Background())
	_, err := leaves.Exec(t.Context(), "create temporary table for_now as select 1 as id")
	must(t, err)
	n.settings.Synchronous = `ANY 1 ("nobody")`
	must(t, n.Configure(n.settings))
	must(t, n.process.Reload())
	must(t, n.AwaitEnforced(within(t, deadline)))
	committed := make(chan error, 1)
	go func() {
		_, err := waits.Exec(context.Background(), "insert into kept values (1)")
		committed <- err
	}()
	n.eventually("a commit waits", func() bool {
		return n.ask("select count(*) from pg_stat_activity where wait_event = 'SyncRep'") == "1"
	})

	n.stop(postgres.StopFast)
	if err := <-committed; err == nil {
		t.Error("a client was told of a commit that no standby has")
	}
	if control, err := n.Control(t.Context()); err != nil || control.State != "shut down" {
		t.Errorf("the server is %q (%v), want that it has stopped in order", control.State, err)
	}
	n.lead(n.settings.Synchronous)
	if rule := n.ask("select current_setting('synchronous_standby_names')"); rule != n.settings.Synchronous {
		t.Errorf("after a start, commits wait for %q", rule)
	}
}

package server_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/postgres"
)

// lonely is a primary whose standbys are gone, and a session that has a temporary table. It removes that as it ends,
// and waits for a standby then; no signal ends it.
func lonely(t *testing.T) *node {
	t.Helper()
	n := nodes(t, 1)[0]
	n.found()
	n.do("create table kept (id int)")
	leaves := n.dial()
	t.Cleanup(func() { _ = leaves.Close(context.Background()) })
	_, err := leaves.Exec(t.Context(), "create temporary table for_now as select 1 as id")
	must(t, err)
	n.demand(`ANY 1 ("nobody")`)
	return n
}

// demand has commits wait by a rule.
func (n *node) demand(rule string) {
	n.Helper()
	n.settings.Synchronous = rule
	must(n, n.Configure(n.settings))
	must(n, n.process.Reload())
	must(n, n.AwaitEnforced(within(n.T, deadline)))
}

// insert writes a row by a session of its own, and says what its client was told.
func (n *node) insert(replication string) (told chan error) {
	n.Helper()
	_, begin := n.prepareInsert(replication)
	return begin()
}

// prepareInsert is the process of a session, and has that write a row. With "database" it is a WAL sender.
func (n *node) prepareInsert(replication string) (pid int, begin func() (told chan error)) {
	n.Helper()
	config, err := pgx.ParseConfig("host=" + n.Server.Run + " port=5432 user=postgres dbname=postgres sslmode=disable")
	must(n, err)
	if replication != "" {
		config.RuntimeParams["replication"] = replication
	}
	session, err := pgconn.ConnectConfig(n.Context(), &config.Config)
	must(n, err)
	n.Cleanup(func() { _ = session.Close(context.Background()) })
	return int(session.PID()), func() chan error {
		told := make(chan error, 1)
		go func() {
			_, err := session.Exec(context.Background(), "insert into kept values (1)").ReadAll()
			told <- err
		}()
		return told
	}
}

// waits waits until so many commits wait for standbys.
func (n *node) waits(commits string) {
	n.Helper()
	n.eventually("commits wait", func() bool {
		return n.ask("select count(*) from pg_stat_activity where wait_event = 'SyncRep'") == commits
	})
}

// stopping stops the server in order, and says when it has stopped.
func (n *node) stopping() (stopped chan struct{}) {
	stopped = make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop(postgres.StopFast)
	}()
	return stopped
}

// hasStoppedInOrder waits for that.
func (n *node) hasStoppedInOrder(stopped chan struct{}) {
	n.Helper()
	<-stopped
	if control, err := n.Control(n.Context()); err != nil || control.State != "shut down" {
		n.Errorf("the server is %q (%v), want that it has stopped in order", control.State, err)
	}
}

// keepsItsRule fails where a server has its commits wait for nobody within some looks at who is left.
func (n *node) keepsItsRule(why string) {
	n.Helper()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(n.Data.Path(), "postgresql.conf"))
		must(n, err)
		if bytes.Contains(text, []byte("synchronous_standby_names = ''")) {
			n.Errorf("commits wait for nobody, %s", why)
			return
		}
	}
}

func (n *node) toldNothing(told chan error) {
	n.Helper()
	if err := <-told; err == nil {
		n.Error("a client was told of a commit that no standby has")
	}
}

// A primary whose standbys are gone stops in order. Another session than the one that ends waits with its client, which
// is not told that its commit is safe.
func TestAStopDoesNotWaitForStandbysThatAreGone(t *testing.T) {
	for name, shown := range map[string]string{"shown": "on", "not shown": "off"} {
		t.Run(name, func(t *testing.T) {
			n := lonely(t)
			n.settings.Parameters["update_process_title"] = shown
			n.demand(n.settings.Synchronous)
			n.eventually("titles are as wanted", func() bool {
				return n.ask("select current_setting('update_process_title')") == shown
			})
			ends := n.dial() // of the last one it is not known whether it has read that
			defer ends.Close(context.Background())
			for _, statement := range []string{
				"set synchronous_commit = local", "create temporary table for_now (id int)", "reset synchronous_commit",
			} {
				_, err := ends.Exec(t.Context(), statement)
				must(t, err)
			}
			told := n.insert("")
			n.waits("1")
			n.hasStoppedInOrder(n.stopping())
			n.toldNothing(told)
			n.lead(n.settings.Synchronous)
			if rule := n.ask("select current_setting('synchronous_standby_names')"); rule != n.settings.Synchronous {
				t.Errorf("after a start, commits wait for %q", rule)
			}
		})
	}
}

// A postmaster tells its WAL senders to end last. One that has a database takes SQL, and has a client who waits for it.
func TestAStopTellsNoClientOfAWALSender(t *testing.T) {
	n := lonely(t)
	told := n.insert("database")
	n.waits("1")
	n.hasStoppedInOrder(n.stopping())
	n.toldNothing(told)
}

// A postmaster that is slow has told nobody to end yet.
func TestAStopTellsNoClientBeforeThePostmasterStops(t *testing.T) {
	n := lonely(t)
	told := n.insert("")
	n.waits("1")
	postmaster := n.postmaster()
	if !n.hold(postmaster) {
		t.Fatal("the postmaster has ended")
	}
	stopped := n.stopping()
	n.keepsItsRule("and sessions have not been told to end")
	must(t, syscall.Kill(postmaster, syscall.SIGCONT))
	n.hasStoppedInOrder(stopped)
	n.toldNothing(told)
}

package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

const (
	readPoolName = "readpool"
	// leaves is what it logs when it leaves a standby, or goes to another one.
	leaves = "goes to other standbys"
)

func (c *cluster) readPoolHost() string { return fmt.Sprintf("127.10.%d.101", c.subnet) }

// reading is a formed cluster with a pooler for writing and one for reading.
func reading(t *testing.T, instances int) *cluster {
	t.Helper()
	c := pooled(t, instances)
	bouncer, err := releases.PgBouncer(t.Context())
	c.must(err)
	c.runPooler(bouncer, readPoolName, c.readPoolHost(), protocol.PoolSettings{Reads: true})
	return c
}

// readSession opens a session through the pooler for reading.
func (c *cluster) readSession() *pgx.Conn {
	c.Helper()
	var conn *pgx.Conn
	var err error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if conn, err = c.throughPoolAt(c.readPoolHost(), "app", "of app", "app"); err == nil {
			c.Cleanup(func() { _ = conn.Close(context.Background()) })
			return conn
		}
	}
	c.Fatalf("the pooler for reading lets nobody in: %v", err)
	return nil
}

// served are the instances on which so many transactions run that sessions begin side by side.
func (c *cluster) served(sessions []*pgx.Conn) map[string]bool {
	c.Helper()
	out := map[string]bool{}
	for _, tx := range c.begins(sessions) {
		var server string
		c.must(tx.QueryRow(c.Context(), "select current_setting('cluster_name')").Scan(&server))
		out[server] = true
		defer func() { c.must(tx.Rollback(c.Context())) }()
	}
	return out
}

// begins begins a transaction in each session: PgBouncer gives it a server with its first statement.
func (c *cluster) begins(sessions []*pgx.Conn) []pgx.Tx {
	c.Helper()
	var open []pgx.Tx
	for _, session := range sessions {
		tx, err := session.Begin(c.Context())
		c.must(err)
		open = append(open, tx)
	}
	return open
}

// ends has each transaction do something, and ends it.
func (c *cluster) ends(open []pgx.Tx) {
	c.Helper()
	for _, tx := range open {
		_, err := tx.Exec(c.Context(), "select 1")
		c.must(err)
		c.must(tx.Rollback(c.Context()))
	}
}

// awaitServed waits until sessions are served by these instances, and no others. An error in it is one of a client.
func (c *cluster) awaitServed(sessions []*pgx.Conn, want ...string) {
	c.Helper()
	var got map[string]bool
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		got = c.served(sessions)
		same := len(got) == len(want)
		for _, name := range want {
			same = same && got[name]
		}
		if same {
			return
		}
	}
	c.Fatalf("clients that read are on %v, want %v", got, want)
}

// Clients that only read go to all standbys, leave one that becomes the primary, and see no error, as long as no
// transaction of theirs is under way on a standby that stops.
func TestClientsThatReadGoToTheStandbys(t *testing.T) {
	t.Parallel()
	c := reading(t, 3)
	leader := c.whole()
	sessions := []*pgx.Conn{c.readSession(), c.readSession(), c.readSession(), c.readSession()}
	c.awaitServed(sessions, c.others(leader)...)

	open := c.begins(sessions)
	c.switchover(leader)
	c.ends(open) // also on the one that is the primary now
	c.awaitServed(sessions, c.others(c.whole())...)
	for _, name := range c.names() {
		if strings.Contains(c.logs[name].String(), outside.PoolersSlow) {
			t.Errorf("%s waited for a pooler whose clients were not there", name)
		}
	}

	// A standby that is killed, and that does not come back for a while.
	leader = c.leader()
	gone, left := c.others(leader)[0], c.others(leader)[1]
	goes := fmt.Sprintf(`"%s","instances":%q`, leaves, left)
	before := strings.Count(c.logs[readPoolName].String(), goes)
	c.kill(gone, syscall.SIGKILL)
	// Until the pooler knows, it may give a transaction a connection that is broken: that one sees an error.
	c.until("the pooler leaves it", func() error {
		if strings.Count(c.logs[readPoolName].String(), goes) == before {
			return errors.New("it has not said so")
		}
		return nil
	})
	c.awaitServed(sessions, left)
	c.startOne(gone)
	c.awaitServed(sessions, c.others(leader)...)
}

// Who reads is not on a standby that is too late, and comes back when it is not any more. A transaction that was under
// way there ends by itself.
func TestClientsThatReadLeaveAStandbyThatIsLate(t *testing.T) {
	t.Parallel()
	c := reading(t, 3)
	leader := c.whole()
	c.config.ReadMaxLag = time.Second
	c.sync()
	standbys := c.others(leader)
	sessions := []*pgx.Conn{c.readSession(), c.readSession(), c.readSession(), c.readSession()}
	c.awaitServed(sessions, standbys...)
	before := strings.Count(c.logs[readPoolName].String(), leaves)
	open := c.begins(sessions)
	c.exec(standbys[0], "select pg_wal_replay_pause()")
	c.exec(leader, "create table later ()")
	c.await(standbys[0], "late", func(s protocol.Status) bool { return s.Late && s.Ready })
	c.awaitLog(readPoolName, leaves, before+1)
	c.ends(open)
	c.awaitServed(sessions, standbys[1])
	c.exec(standbys[0], "select pg_wal_replay_resume()")
	c.awaitServed(sessions, standbys...)
}

// While there is no standby, those who read go to the primary, and wait with all others while nobody leads.
func TestClientsThatReadOfALoneInstance(t *testing.T) {
	t.Parallel()
	c := reading(t, 1)
	sessions := []*pgx.Conn{c.readSession()}
	c.awaitServed(sessions, "db-0")
	before := c.postmaster("db-0")
	c.restart("db-0")
	c.await("db-0", "restarted", func(s protocol.Status) bool { return primary(s) && c.postmaster("db-0") != before })
	c.awaitServed(sessions, "db-0")
}

// Who reads leaves a standby that hangs.
func TestClientsThatReadLeaveAStandbyThatHangs(t *testing.T) {
	t.Parallel()
	c := reading(t, 3)
	leader := c.whole()
	standbys := c.others(leader)
	sessions := []*pgx.Conn{c.readSession(), c.readSession(), c.readSession(), c.readSession()}
	c.awaitServed(sessions, standbys...)
	before := strings.Count(c.logs[readPoolName].String(), leaves)
	c.freezeAll(standbys[0])
	c.awaitLog(readPoolName, leaves, before+1)
	// A session of a client that had a transaction there is over.
	sessions = []*pgx.Conn{c.readSession(), c.readSession()}
	c.awaitServed(sessions, standbys[1])
}

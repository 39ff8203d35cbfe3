package local

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

// Who comes after as many clients as a pooler takes is told so at once, and those that are there go on.
func TestAPoolerThatHasAllItsClients(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	first := c.pooledApp()
	bouncer, err := releases.PgBouncer(t.Context())
	c.must(err)
	c.runPooler(bouncer, "small", c.readPoolHost(), protocol.PoolSettings{MaxClients: 5})
	c.awaitLog("small", "lets its clients go on", 1)
	var refused error
	for range 6 {
		conn, err := c.throughPoolAt(c.readPoolHost(), "app", "of app", "app")
		if err != nil {
			refused = err
			break
		}
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "select 1")
		c.must(err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "no more connections allowed") {
		t.Errorf("the sixth of five gets %v", refused)
	}
	_, err = first.Exec(t.Context(), "select 1")
	c.must(err)
}

// A flood of wrong passwords keeps nobody out who has the right one, and takes no connections of the server's away.
func TestAFloodOfWrongPasswords(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	load := c.loadPool(4)
	c.goesOn(load, 50)
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() {
			for range 25 {
				if conn, err := c.throughPool("app", "guessed", "app"); err == nil {
					c.Error("a wrong password lets in")
					_ = conn.Close(context.Background())
				}
				if conn, err := c.throughPool("nobody", "guessed", "app"); err == nil {
					c.Error("a role that is not there is let in")
					_ = conn.Close(context.Background())
				}
			}
		})
	}
	c.goesOn(load, 50)
	flood.Wait()
	c.goesOn(load, 50)
	c.losesNothing(load)
	c.must(load.SeeNoError())
}

// A leader that dies in the middle of a hand-over, while its poolers hold, leaves no client waiting for it.
func TestALeaderThatDiesWhilePoolersHold(t *testing.T) {
	t.Parallel()
	c := pooled(t, 3)
	load := c.loadPool(4)
	c.goesOn(load, 50)
	open, err := c.pooledApp().Begin(t.Context()) // it has the leader wait for its patience
	c.must(err)
	_, err = open.Exec(t.Context(), "select 1")
	c.must(err)
	leader := c.leader()
	ordinal, _ := naming.Ordinal(leader)
	handed := make(chan struct{})
	go func() {
		defer close(handed)
		_, _ = c.operator.Switchover(context.Background(), c.host(ordinal), protocol.Switchover{Reason: "test"})
	}()
	c.awaitLog(poolName, `"reason":"HandOver"`, 1)
	c.kill(leader, syscall.SIGKILL)
	c.leader(leader)
	<-handed
	c.goesOn(load, 100)
	c.losesNothing(load)
	c.inTime(load, outside.Lost)
	if err := open.Rollback(t.Context()); err == nil {
		t.Error("a transaction goes on though its server has died")
	}
	_, err = c.pooledApp().Exec(t.Context(), "select 1")
	c.must(err)
}

// A pooler that can't reach one of two instances serves its clients as long as the other one leads. While the one leads
// that it can't reach, they wait: it does not lead them to the former leader. Another pooler's clients go on.
func TestAPoolerThatIsCutFromAnInstance(t *testing.T) {
	t.Parallel()
	c := pooled(t, 2)
	if c.leader() != "db-0" {
		c.switchover("db-1")
		c.whole()
	}
	bouncer, err := releases.PgBouncer(t.Context())
	c.must(err)
	c.runPooler(bouncer, "cut", c.readPoolHost(), protocol.PoolSettings{Hosts: []string{c.host(0), c.silentHost()}})
	c.awaitLog("cut", "lets its clients go on", 1)
	load, other := c.loadPoolAt(c.readPoolHost(), 2), c.pooledApp()
	c.goesOn(load, 50)
	c.holds(load, func() {
		if c.leader() != "db-0" { // it has handed over already, though the pooler did not hold
			c.whole()
			c.switchover("db-1")
			c.whole()
		}
		c.goesOn(load, 50)
		c.switchover("db-0")
	})
	_, err = other.Exec(t.Context(), "select 1")
	c.must(err)
	c.awaitLog("cut", `"reason":"NoLeader"`, 1)
	before := load.Written()
	_, err = other.Exec(t.Context(), "select pg_sleep(1)")
	c.must(err)
	if now := load.Written(); now != before {
		t.Errorf("%d rows were written through a pooler that can't reach the leader", now-before)
	}

	c.whole()
	c.switchover("db-1")
	c.goesOn(load, 50)
	c.losesNothing(load)
	c.sawNoError(load)
}

// silentHost is a host that takes connections, and never says anything.
func (c *cluster) silentHost() string {
	c.Helper()
	host := fmt.Sprintf("127.10.%d.150", c.subnet)
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(naming.PortAgent)))
	c.must(err)
	c.Cleanup(func() { _ = listener.Close() })
	return host
}

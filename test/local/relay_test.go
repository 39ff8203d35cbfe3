package local

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// relayed is a formed cluster of three whose agents pass clients on.
func relayed(t *testing.T) *cluster {
	t.Helper()
	c := formed(t, 3)
	c.config.Relay = true
	c.sync()
	for _, m := range c.config.Members {
		c.await(m.Name, "passes clients on", func(s protocol.Status) bool { return s.Relays })
	}
	return c
}

// throughRelay opens a session through the relay of an instance, with the certificate of whom it gets to.
func (c *cluster) throughRelay(instance, leader string) (*pgx.Conn, error) {
	at, _ := naming.Ordinal(instance)
	to, _ := naming.Ordinal(leader)
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres connect_timeout=40",
		c.host(at), naming.PortRelay))
	if err != nil {
		return nil, err
	}
	config.TLSConfig, config.Fallbacks = c.databaseTLS(c.host(to)), nil
	return pgx.ConnectConfig(context.Background(), config)
}

// passedOn opens a session through the relay of each instance, and expects all to be on the leader.
func (c *cluster) passedOn(leader string) []*pgx.Conn {
	c.Helper()
	var out []*pgx.Conn
	for _, m := range c.config.Members {
		session, err := c.throughRelay(m.Name, leader)
		if err != nil {
			c.Fatalf("through %s: %v", m.Name, err)
		}
		c.Cleanup(func() { _ = session.Close(context.Background()) })
		c.on(session, leader)
		out = append(out, session)
	}
	return out
}

// on expects a session to be on an instance, and to write there.
func (c *cluster) on(session *pgx.Conn, leader string) {
	c.Helper()
	var name string
	_, err := session.Exec(context.Background(), "create temporary table if not exists written ()")
	if err == nil {
		err = session.QueryRow(context.Background(), "select current_setting('cluster_name')").Scan(&name)
	}
	if err != nil || name != leader {
		c.Errorf("the session is on %q (%v), and %s leads", name, err, leader)
	}
}

// others are the other instances.
func (c *cluster) others(than string) []string {
	var out []string
	for _, m := range c.config.Members {
		if m.Name != than {
			out = append(out, m.Name)
		}
	}
	return out
}

// Clients get to the primary through every instance. A query is cancelled by the same way.
func TestEveryInstancePassesClientsOnToThePrimary(t *testing.T) {
	t.Parallel()
	c := relayed(t)
	leader := c.whole()
	sessions := c.passedOn(leader)
	for _, session := range sessions {
		soon, end := context.WithTimeout(t.Context(), time.Second)
		_, err := session.Exec(soon, "select pg_sleep(600)")
		end()
		if err == nil {
			t.Error("the query ended")
		}
	}
	c.awaitQuery(leader, "select count(*)::text from pg_stat_activity where query = 'select pg_sleep(600)' "+
		"and state = 'active'", "0")
}

// A client that comes while nobody leads waits, and gets to the next primary.
func TestAClientWaitsInARelayForTheNextPrimary(t *testing.T) {
	t.Parallel()
	c := relayed(t)
	before := c.whole()
	standbys := c.others(before)
	c.kill(before, syscall.SIGKILL)
	got := make(chan error, 1)
	var session *pgx.Conn
	go func() {
		var err error
		for end := time.Now().Add(deadline); time.Now().Before(end); { // whom it gets to is not known before
			for _, next := range standbys {
				if session, err = c.throughRelay(standbys[0], next); err == nil {
					got <- nil
					return
				}
			}
		}
		got <- err
	}()
	next := c.leader(before)
	c.must(<-got)
	c.on(session, next)
	c.must(session.Close(t.Context()))
	c.start(before)
	c.whole()
	c.passedOn(next)
}

// A session on a primary that hangs ends when another leads, and a connection on which it has said nothing gets to
// that one.
func TestARelayLeavesAPrimaryThatHangs(t *testing.T) {
	t.Parallel()
	c := relayed(t)
	before := c.whole()
	through := c.others(before)[0]
	session, err := c.throughRelay(through, before)
	c.must(err)
	c.freezeAll(before)
	ended := make(chan error, 1)
	go func() { _, err := session.Exec(context.Background(), "select 1"); ended <- err }()
	opened := make(chan *pgx.Conn, 1)
	go func() {
		session, err := c.throughRelay(through, before)
		if err != nil {
			t.Errorf("a connection fails on which a primary that hangs has said nothing: %v", err)
		}
		opened <- session
	}()
	next := c.leader(before)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a session goes on at a primary that hangs")
		}
	case <-time.After(deadline):
		t.Errorf("a session waits for a primary that hangs, though %s leads", next)
	}
	if session := <-opened; session != nil {
		c.on(session, next)
		c.must(session.Close(t.Context()))
	}
}

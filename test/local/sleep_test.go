package local

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
	"toban.dev/test/releases"
)

// asksPoolers is how the operator asks a pooler, or somebody with another certificate.
func (c *cluster) asksPoolers(identity string) *protocol.Client {
	c.Helper()
	authority := c.authority
	show, roots := c.shows(authority, identity)
	if identity == naming.IdentityOperator {
		show = c.operatorCertificate(9)
	}
	return protocol.NewClient(pki.ClientTLS(show, roots, naming.IdentityPooler), naming.PortAgent)
}

// awaitTold waits until the pooler tells what is wanted.
func (c *cluster) awaitTold(what string, wanted func(protocol.PoolTells) bool) {
	c.Helper()
	operator := c.asksPoolers(naming.IdentityOperator)
	defer operator.Close()
	c.until(what, func() error {
		told, err := operator.Waiting(c.Context(), c.poolHost(), nil)
		if err == nil && !wanted(told) {
			err = fmt.Errorf("the pooler tells %+v", told)
		}
		return err
	})
}

// comes has a client do something, and sends what becomes of that.
func comes(does func() error) <-chan error {
	out := make(chan error, 1)
	go func() { out <- does() }()
	return out
}

// logsIn is a client that opens a session through the pooler, and asks something.
func (c *cluster) logsIn(password string) func() error {
	return func() error {
		conn, err := c.throughPool("app", password, "app")
		if err != nil {
			return err
		}
		defer conn.Close(context.Background())
		return asks(conn)
	}
}

func asks(conn *pgx.Conn) error {
	n := 0
	return conn.QueryRow(context.Background(), "select 1").Scan(&n)
}

// stopAsleep stops all instances in order, as the operator does with a database that goes to sleep.
func (c *cluster) stopAsleep() {
	c.Helper()
	c.config.Holds = true
	c.sync()
	c.awaitTold("it holds", func(p protocol.PoolTells) bool { return p.Held })
	c.config.Closed = true
	c.sync()
	for _, m := range c.config.Members {
		c.await(m.Name, "closed", func(s protocol.Status) bool { return s.Closed })
	}
	for _, m := range c.config.Members {
		c.kill(m.Name, syscall.SIGTERM)
	}
}

// startAgain starts all instances.
func (c *cluster) startAgain() {
	c.Helper()
	c.config.Holds, c.config.Closed = false, false
	c.start(c.names()...)
}

// answered checks that a client got its answer.
func (c *cluster) answered(who string, answer <-chan error) {
	c.Helper()
	select {
	case err := <-answer:
		if err != nil {
			c.Errorf("%s got an error: %v", who, err)
		}
	case <-time.After(deadline):
		c.Errorf("%s got no answer", who)
	}
}

// Clients of a pooler wait while a database sleeps, whether they are known or not, and see no error when it wakes. The
// operator hears of them, and nobody else does. TestASampleDBSleepsAndWakes (test/api) has the steps.
func TestLongClientsOfADatabaseThatSleepsWaitInItsPooler(t *testing.T) {
	t.Parallel()
	c := pooled(t, 2)
	bouncer, err := releases.PgBouncer(t.Context())
	c.must(err)
	c.kill(poolName, syscall.SIGTERM)
	settings := protocol.PoolSettings{Operator: c.config.Operator}
	c.runPooler(bouncer, poolName, c.poolHost(), settings)
	session := c.pooledApp()
	c.must(asks(session))
	stranger := c.asksPoolers(naming.IdentityInstance)
	if told, err := stranger.Waiting(t.Context(), c.poolHost(), nil); err == nil {
		t.Errorf("an instance is told %+v", told)
	}

	c.stopAsleep()
	wrong := comes(c.logsIn("wrong"))
	idle, other := comes(func() error { return asks(session) }), comes(c.logsIn("of app"))
	c.awaitTold("three clients wait", func(p protocol.PoolTells) bool { return p.Held && p.Waiting >= 3 })
	c.startAgain()
	c.answered("a session that was idle", idle)
	c.answered("a new client", other)
	if err := <-wrong; err == nil || !strings.Contains(err.Error(), "authentication failed") {
		t.Errorf("a client with another password got %v", err)
	}

	// A pooler that is made anew meanwhile takes clients all the same.
	c.whole()
	c.stopAsleep()
	c.kill(poolName, syscall.SIGTERM)
	settings.Asleep = true
	c.runPooler(bouncer, poolName, c.poolHost(), settings)
	c.until("it is ready", func() error {
		probe := fmt.Sprintf("http://%s:%d/readyz", c.poolHost(), naming.PortProbe)
		ready, err := http.Get(probe) //nolint:noctx // it ends with the test
		if err != nil {
			return err
		}
		defer ready.Body.Close()
		if ready.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", ready.Status)
		}
		return nil
	})
	other = comes(c.logsIn("of app"))
	c.awaitTold("a client waits", func(p protocol.PoolTells) bool { return p.Held && p.Waiting == 1 })
	c.startAgain()
	c.answered("a client of the new pooler", other)
}

// idle is for how long no client has done anything on an instance, nil where that is not known.
func (c *cluster) idle(name string) *time.Duration {
	c.Helper()
	ordinal, _ := naming.Ordinal(name)
	status, err := c.operator.Sync(c.Context(), c.host(ordinal), c.config)
	c.must(err)
	return status.Idle
}

// awaitIdle waits until an instance says that no client has done anything for so long, doing something meanwhile.
func (c *cluster) awaitIdle(name string, least time.Duration, meanwhile func() error) {
	c.Helper()
	c.until("no client does anything", func() error {
		if err := meanwhile(); err != nil {
			return err
		}
		if got := c.idle(name); got == nil || *got < least {
			return fmt.Errorf("it lasts %v, and not %s", got, least)
		}
		return nil
	})
}

// What a client does is noticed, and an open transaction is something done. Who only is there, who only looks how the
// server is, and we ourselves do nothing. TestForHowLongClientsHaveDoneNothing (internal/agent) has the time.
func TestLongClientsThatDoNothing(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	name := c.whole()
	c.exec(name, "create role app login password 'app'", "create database app owner app",
		"create role watcher login password 'app' in role pg_monitor")
	if c.idle(name) != nil {
		t.Error("it looks though nobody has asked for that")
	}
	c.config.Idles = true
	c.sync()
	c.awaitIdle(name, 2*time.Second, func() error { return nil })

	// Who scrapes the agent is no client, either.
	watcher, err := c.as(name, "watcher")
	c.must(err)
	defer watcher.Close(context.Background())
	c.awaitIdle(name, 4*time.Second, func() error {
		c.metricsOf(name)
		return asks(watcher)
	})

	session, err := c.app(name)
	c.must(err)
	defer session.Close(context.Background())
	began := time.Now()
	c.must(asks(session))
	c.until("it is noticed", func() error {
		if got := c.idle(name); got == nil || *got > time.Since(began) {
			return fmt.Errorf("it lasts %v, %s after a query", got, time.Since(began))
		}
		return nil
	})
	c.awaitIdle(name, 2*time.Second, func() error { return nil })

	began = time.Now()
	_, err = session.Exec(t.Context(), "begin")
	c.must(err)
	c.until("a transaction has been open for long", func() error {
		if since := time.Since(began); since < 6*time.Second {
			return fmt.Errorf("for %s", since)
		}
		return nil
	})
	c.until("it says so", func() error {
		got := c.idle(name)
		if got == nil {
			return fmt.Errorf("it is not known")
		}
		if *got > 5500*time.Millisecond { // what was not looked at for longer is not known
			t.Errorf("with an open transaction it lasts %s", *got)
		}
		return nil
	})
}

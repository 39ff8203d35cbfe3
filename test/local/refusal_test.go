package local

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// missingLibrary is a parameter with which no session of a client begins, and no standby's: PostgreSQL notices when one
// does (PostgreSQL 17 documentation, 19.11.4).
var missingLibrary = map[string]string{"session_preload_libraries": "no_such_library"}

// refuse waits until all instances are ready, and say that they do without what is wanted.
func (c *cluster) refuse() {
	c.Helper()
	for _, m := range c.config.Members {
		s := c.await(m.Name, "refusing", func(s protocol.Status) bool {
			return s.Ready && s.RejectedRevision == c.config.Revision
		})
		if !strings.Contains(s.ConfigError, "no_such_library") {
			c.Errorf("%s does not name the library: %q", m.Name, s.ConfigError)
		}
	}
}

// terms are those in which the instances are.
func (c *cluster) terms() (terms []uint64) {
	c.Helper()
	for _, m := range c.config.Members {
		s, err := c.status(m.Name)
		if err != nil {
			c.Fatal(err)
		}
		terms = append(terms, s.Term)
	}
	return terms
}

// What lets no session begin is found at once and taken back on each instance: nobody is elected, and what is wanted
// next is taken.
func TestAConfigurationThatLetsNoSessionBegin(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	before, old := c.terms(), c.config.Parameters
	c.config.Parameters = missingLibrary
	c.sync()
	c.refuse()
	c.exec("db-0", "insert into t values (2)")
	time.Sleep(5 * time.Second) // more than it takes to find that a primary does not do what it is for
	c.refuse()
	if after := c.terms(); after[0] != before[0] {
		t.Errorf("the terms were %d, and are %d", before, after)
	}
	c.kill("db-1", syscall.SIGTERM)
	c.start("db-1") // with what is wanted, and finds the same
	c.refuse()
	c.await("db-1", "streaming", streaming)
	c.config.Parameters = old
	c.sync()
	for _, m := range c.config.Members {
		c.await(m.Name, "configured", applied(c.config.Revision))
	}
}

// A database can begin with such a configuration.
func TestADatabaseBeginsWithAConfigurationThatLetsNoSessionBegin(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.config.Parameters = missingLibrary
	c.form()
	c.refuse()
	c.config.Parameters = map[string]string{"work_mem": "7MB"}
	c.sync()
	for _, m := range c.config.Members {
		c.await(m.Name, "configured", applied(c.config.Revision))
		c.awaitQuery(m.Name, "show work_mem", "7MB")
	}
}

// A superuser can take the agents' own way in: they take it back while they have a session. Where only sessions that
// load something are refused, they go on. Nobody is elected.
func TestTheAgentsWayInIsTaken(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	before := c.terms()
	c.exec("db-0", "create database other", "alter role postgres nologin")
	c.awaitQuery("db-0", "select 1::text", "1")
	conn, err := c.connectIn(t.Context(), c.host(0), "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "alter database postgres allow_connections false"); err != nil {
		t.Fatal(errors.Join(err, conn.Close(t.Context())))
	}
	_ = conn.Close(t.Context())
	c.awaitQuery("db-0", "select 1::text", "1")
	c.exec("db-0", "alter role postgres set session_preload_libraries = 'no_such_library'")
	time.Sleep(5 * time.Second) // more than it takes to find that a primary does not do what it is for
	for _, m := range c.config.Members {
		c.await(m.Name, "ready", func(s protocol.Status) bool { return s.Ready && s.ConfigError == "" })
	}
	if after := c.terms(); after[0] != before[0] {
		t.Errorf("the terms were %d, and are %d", before, after)
	}
}

// Where no session of the agent is left, it lets itself in again by PostgreSQL itself, before the server takes clients.
func TestTheAgentsWayInIsTakenAndNoSessionIsLeft(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.signal(c.agents["db-0"], syscall.SIGSTOP)
	c.exec("db-0", "alter role postgres nologin")
	c.kill("db-0", syscall.SIGKILL)
	c.startOne("db-0")
	c.awaitQuery("db-0", "select 1::text", "1")
	c.await("db-0", "ready", func(s protocol.Status) bool { return s.Ready })
}

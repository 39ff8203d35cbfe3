package local

import (
	"context"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// loadPool has clients of the pooler write.
func (c *cluster) loadPool(clients int) *outside.Clients {
	c.Helper()
	return c.loadPoolAt(c.poolHost(), clients)
}

// loadPoolAt has clients of the pooler write that listens on an address.
func (c *cluster) loadPoolAt(host string, clients int) *outside.Clients {
	c.Helper()
	c.pooledApp()
	load, err := outside.StartClients(c.Context(), clients, func(context.Context) (*pgx.Conn, error) {
		return c.throughPoolAt(host, "app", "of app", "app")
	})
	c.must(err)
	c.Cleanup(load.Stop)
	return load
}

// goesOn waits until clients have written so many more rows.
func (c *cluster) goesOn(load *outside.Clients, rows int) {
	c.Helper()
	c.must(load.AwaitMore(c.Context(), deadline, rows))
}

// losesNothing ends the clients, and holds that the rows that were acknowledged are there.
func (c *cluster) losesNothing(load *outside.Clients) {
	c.Helper()
	if err := load.LoseNothing(c.Context()); err != nil {
		c.Error(err)
	}
}

// agentLogs are the logs of all agents so far.
func (c *cluster) agentLogs() (all []string) {
	for _, name := range c.names() {
		all = append(all, c.logs[name].String())
	}
	return all
}

// holds has a primary hand over, again and again, until all clients were held once, without an error. It fails where a
// client has seen one that has no excuse.
func (c *cluster) holds(load *outside.Clients, handOver func()) {
	c.Helper()
	c.must(load.UntilHeld(c.Context(), c.agentLogs, handOver))
}

// holdsUnderWrites does so while clients write: so many rows before and after each hand-over.
func (c *cluster) holdsUnderWrites(load *outside.Clients, rows int, handOver func()) {
	c.Helper()
	c.holds(load, func() {
		c.goesOn(load, rows)
		handOver()
		c.goesOn(load, rows)
	})
}

// sawNoError holds that no transaction of the clients has failed, but for those that a primary has not waited for.
func (c *cluster) sawNoError(load *outside.Clients) {
	c.Helper()
	if err := outside.Forgive(load.Failures(), outside.ReadHandOvers(c.agentLogs()...)); err != nil {
		c.Error(err)
	}
}

// inTime holds that no transaction of the clients took longer than an event may keep them from writing.
func (c *cluster) inTime(load *outside.Clients, bound outside.Bound) {
	c.Helper()
	c.Logf("%d transactions, the longest took %s", load.Written(), load.Longest())
	if err := bound.Judge(load.Longest()); err != nil {
		c.Error(err)
	}
}

// restarts has an agent restart its server, and waits until it runs anew.
func (c *cluster) restarts(name string) {
	c.Helper()
	before := c.postmaster(name)
	c.restart(name)
	c.await(name, "running anew", func(s protocol.Status) bool {
		return (primary(s) || streaming(s)) && c.postmaster(name) != before
	})
}

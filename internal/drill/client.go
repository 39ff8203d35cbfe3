package drill

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// client writes numbered rows over one connection, and opens another one when that breaks.
type client struct {
	way   Way
	table string

	mutex  sync.Mutex
	record record
	// first is when its first write was acknowledged.
	first time.Time
}

// run writes until ctx ends.
func (c *client) run(ctx context.Context) {
	var conn *pgx.Conn
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			hangUp(conn)
			return
		case <-tick.C:
		}
		conn = c.write(ctx, conn, n)
	}
}

// write tries one row, and returns the connection for the next one. A row that fails may be there or not: its number
// is not used again.
func (c *client) write(ctx context.Context, conn *pgx.Conn, n int64) *pgx.Conn {
	once, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if conn == nil {
		fresh, err := c.way.Connect(once)
		if err != nil {
			c.failed(ctx, err)
			return nil
		}
		conn = fresh
	}
	if _, err := conn.Exec(once, "INSERT INTO "+c.table+" (way, n) VALUES ($1, $2)", c.way.Name, n); err != nil {
		c.failed(ctx, err)
		hangUp(conn)
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	if c.first.IsZero() {
		c.first = now
	}
	c.record.ack(n, now)
	return conn
}

// failed notes an error, unless it is the end.
func (c *client) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.record.fail(err, time.Now())
}

func (c *client) steady(now time.Time) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.record.steady(now, c.first, steadyFor)
}

func (c *client) begin(now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.record.begin(now)
}

func (c *client) silence(now time.Time) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.record.silence(now)
}

func (c *client) writes(now time.Time) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.record.writes(now)
}

// seen is what it has seen until now.
func (c *client) seen(now time.Time) Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return Client{
		Way: c.way.Name, Outage: c.record.end(now), Errors: c.record.errors, FirstError: c.record.firstError,
	}
}

// hangUp closes a connection, which may lead to nobody any more.
func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

package drill

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// client writes numbered rows over one connection, and reads over another one which the newest is. It opens another
// connection when one breaks.
type client struct {
	way   Way
	table string

	mutex  sync.Mutex
	record record
	// first is when its first write was acknowledged.
	first time.Time
}

// run writes and reads until ctx ends.
func (c *client) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { c.way.again(ctx, every, c.write, c.failed) })
	both.Go(func() { c.way.again(ctx, readEvery, c.read, func(context.Context, error) {}) })
	both.Wait()
}

// again does something for each number, over one connection for as long as that works.
func (w Way) again(
	ctx context.Context, every time.Duration, do func(context.Context, *pgx.Conn, int64) error,
	failed func(context.Context, error),
) {
	var conn *pgx.Conn
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-ctx.Done():
			sql.HangUp(conn)
			return
		case <-tick.C:
		}
		var err error
		if conn, err = w.once(ctx, conn, n, do); err != nil {
			failed(ctx, err)
		}
	}
}

// once does it once, and returns the connection for the next time.
func (w Way) once(
	ctx context.Context, conn *pgx.Conn, n int64, do func(context.Context, *pgx.Conn, int64) error,
) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if conn == nil {
		fresh, err := w.Connect(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect by %s: %w", w.Name, err)
		}
		conn = fresh
	}
	if err := do(ctx, conn, n); err != nil {
		sql.HangUp(conn)
		return nil, err
	}
	return conn, nil
}

// write tries one row. One that fails may be there or not: its number is not used again.
func (c *client) write(ctx context.Context, conn *pgx.Conn, n int64) error {
	if _, err := conn.Exec(ctx, "INSERT INTO "+c.table+" (way, n) VALUES ($1, $2)", c.way.Name, n); err != nil {
		return fmt.Errorf("write a row: %w", err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := time.Now()
	if c.first.IsZero() {
		c.first = now
	}
	c.record.ack(n, now)
	return nil
}

// read asks for the newest row, which must not be older than the one that was acknowledged last. A read that fails is
// none.
func (c *client) read(ctx context.Context, conn *pgx.Conn, _ int64) error {
	c.mutex.Lock()
	newest := c.record.newest()
	c.mutex.Unlock()
	answer, err := sql.Value[int64](ctx, conn, "read the newest row",
		"SELECT coalesce(max(n), 0) FROM "+c.table+" WHERE way = $1", c.way.Name)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.record.read(answer, newest)
	return nil
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

// age is how old an answer is whose newest row is that one, and that was asked for then.
func (c *client) age(newest int64, asked time.Time) time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.record.age(newest, asked)
}

// seen is what it has seen until now.
func (c *client) seen(now time.Time) Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return Client{
		Way: c.way.Name, Outage: c.record.end(now), Errors: c.record.errors, Reads: c.record.reads,
		StaleReads: c.record.stale, FirstError: c.record.firstError,
	}
}

package outside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Clients are several that write rows at the same time, each row in a transaction of its own, over a session each for
// as long as that lasts. They remember which rows were acknowledged, and every error.
type Clients struct {
	connect func(context.Context) (*pgx.Conn, error)
	stop    context.CancelFunc
	wait    sync.WaitGroup

	mutex   sync.Mutex
	written []int
	failed  []Failure
	longest time.Duration
	gap     Gap
}

const (
	clientsPause = 2 * time.Millisecond // the servers may have one small machine
	clientsTable = "written"
)

// StartClients makes their table anew, and starts so many.
func StartClients(
	ctx context.Context, clients int, connect func(context.Context) (*pgx.Conn, error),
) (*Clients, error) {
	c := &Clients{connect: connect}
	var sessions []*pgx.Conn
	for range clients {
		session, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, session)
	}
	for _, statement := range []string{
		"DROP TABLE IF EXISTS " + clientsTable, "CREATE TABLE " + clientsTable + " (id int PRIMARY KEY)",
	} {
		if _, err := sessions[0].Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("make the clients' table: %w", err)
		}
	}
	running, stop := context.WithCancel(ctx)
	c.stop = stop
	for lane, session := range sessions {
		c.wait.Go(func() { c.run(running, session, lane, clients) })
	}
	return c, nil
}

func (c *Clients) run(ctx context.Context, session *pgx.Conn, lane, step int) {
	for id := lane; ctx.Err() == nil; id += step {
		began := time.Now()
		_, err := session.Exec(context.WithoutCancel(ctx), "INSERT INTO "+clientsTable+" VALUES ($1)", id)
		c.note(id, time.Since(began), err)
		for session.IsClosed() && ctx.Err() == nil {
			if again, err := c.connect(ctx); err == nil {
				session = again
			}
			time.Sleep(clientsPause)
		}
		time.Sleep(clientsPause)
	}
	hangUp(session)
}

func (c *Clients) note(id int, took time.Duration, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.longest = max(c.longest, took)
	if err != nil {
		c.failed = append(c.failed, Failure{At: time.Now(), Err: err})
		return
	}
	c.written = append(c.written, id)
	c.gap.Note(time.Now())
}

// Written is how many rows were acknowledged.
func (c *Clients) Written() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.written)
}

// Failures are the writes that saw an error, in their order.
func (c *Clients) Failures() []Failure {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.failed)
}

// Errors are those of the writes, in their order.
func (c *Clients) Errors() (all []error) {
	for _, f := range c.Failures() {
		all = append(all, f.Err)
	}
	return all
}

// Longest is how long the longest write took, or nobody's was acknowledged: who is thrown out waits for a session.
func (c *Clients) Longest() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return max(c.longest, c.gap.Longest())
}

// AwaitMore waits until so many more rows are acknowledged, as long as Until.
func (c *Clients) AwaitMore(ctx context.Context, patience time.Duration, rows int) error {
	want := c.Written() + rows
	return Until(ctx, patience, func(context.Context) error {
		if have := c.Written(); have < want {
			return fmt.Errorf("%d of %d rows are written: %w", have, want, errors.Join(c.Errors()...))
		}
		return nil
	})
}

// LoseNothing ends the writing, and fails where rows that were acknowledged are not there.
func (c *Clients) LoseNothing(ctx context.Context) error {
	c.Stop()
	lost, err := c.Lost(ctx)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), c.Written(), lost[0])
	}
	return err
}

// SeeNoError fails where a write has failed. There is no excuse: where primaries hand over meanwhile, UntilHeld judges.
func (c *Clients) SeeNoError() error {
	if failed := c.Errors(); len(failed) > 0 {
		return fmt.Errorf("%d writes saw an error: %w", len(failed), failed[0])
	}
	return nil
}

// Stop ends the writing and waits for its end. A write that waits ends first.
func (c *Clients) Stop() {
	c.stop()
	c.wait.Wait()
}

// Lost are the acknowledged rows that are not there. Only after Stop.
func (c *Clients) Lost(ctx context.Context) ([]int, error) {
	session, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer hangUp(session)
	rows, err := session.Query(ctx, "SELECT id FROM "+clientsTable+" ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	there, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(c.written), func(id int) bool {
		_, found := slices.BinarySearch(there, id)
		return found
	}), nil
}

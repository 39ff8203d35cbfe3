// Package drill measures what clients of a database see while it is broken on purpose: they write numbered rows in
// several ways, as applications would, and look afterwards whether all that were acknowledged are there. It must not
// know what is broken, nor by whom.
package drill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres/sql"
)

// Way is a way to reach the primary.
type Way struct {
	// Name is Service, Hosts or Pooler.
	Name    string
	Connect func(ctx context.Context) (*pgx.Conn, error)
}

// Options are what a drill needs. All fields must be set, but for Standbys and AbortWhen.
type Options struct {
	// Ways are how clients connect, one for each. The first one also makes the table, and looks into it at the end.
	Ways []Way
	// Standbys are how to connect to each instance, for those who look how old what they read there is; none for not
	// at all.
	Standbys []Way
	// Schema is made for the rows, and removed at the end: a name that needs no quotes.
	Schema string
	// Observe is for how long they write after they have written without an error for a moment. AbortAfter is how long
	// one may be without an acknowledged write.
	Observe, AbortAfter time.Duration
	// AbortWhen is a query that says by a true value when to give up, "" for none. It is asked once a second, by the
	// second way, or the only one, and answers within patience.
	AbortWhen string
	// Steady is called when the time begins that counts.
	Steady func()
	Log    *slog.Logger
}

// Result is what the clients have seen.
type Result struct {
	Began, Ended time.Time
	// Aborted says that a client had no write acknowledged for AbortAfter, or, with ByQuery, that AbortWhen said so.
	Aborted, ByQuery bool
	Clients          []Client
}

// Client is what one has seen, in the time that counts. Acknowledged and Lost are of all of its writes.
type Client struct {
	Way                        string
	Outage                     time.Duration
	Acknowledged, Lost, Errors int64
	// Reads were answered by the primary, StaleReads of them without a write that was acknowledged before.
	Reads, StaleReads int64
	// Staleness is how old the oldest answer was, of who reads from standbys.
	Staleness  time.Duration
	FirstError string
}

// wayStandbys is what they have together who read from standbys. They write nothing.
const wayStandbys = "Standbys"

const (
	// every is how often each client writes: the precision of what is measured. readEvery is how often it reads.
	every     = 20 * time.Millisecond
	readEvery = 50 * time.Millisecond
	// patience bounds one connection or one write, so that a server that is gone without a word is given up.
	patience = 2 * time.Second
	// steadyFor is how long all must have written without an error before the time counts.
	steadyFor = 3 * time.Second
	look      = 50 * time.Millisecond
	// afterwards is how long the look into the table may take, with all tries.
	afterwards = 2 * time.Minute
)

// Run measures, until the time is over and all clients write, or one has been without for too long.
func Run(ctx context.Context, o Options) (Result, error) {
	d := &drill{Options: o}
	if err := d.retry(ctx, d.create); err != nil {
		return Result{}, err
	}
	var err error
	if d.asks, err = d.guard(ctx); err != nil {
		return Result{}, errors.Join(err, d.drop(ctx))
	}
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var over sync.WaitGroup
	for _, way := range o.Ways {
		c := &client{way: way, table: d.table()}
		d.clients = append(d.clients, c)
		over.Go(func() { c.run(writing) })
	}
	for _, way := range o.Standbys {
		r := &reader{way: way, table: d.table(), of: d.clients[0]}
		d.readers = append(d.readers, r)
		over.Go(func() { r.run(writing) })
	}
	if d.asks != nil {
		over.Go(func() { d.asks.run(writing) })
	}
	result, err := d.observe(ctx)
	stop()
	over.Wait()
	if err != nil { // also if it was stopped
		return result, errors.Join(err, d.drop(context.WithoutCancel(ctx)))
	}
	if err := d.judge(ctx, &result); err != nil {
		return result, err
	}
	return result, d.drop(ctx)
}

type drill struct {
	Options
	clients []*client
	readers []*reader
	asks    *guard // nil for nobody
}

func (d *drill) table() string { return d.Schema + ".writes" }

// observe waits until the clients write steadily, and then until they have done so for long enough.
func (d *drill) observe(ctx context.Context) (Result, error) {
	var result Result
	for {
		now := time.Now()
		switch {
		case result.Began.IsZero() && d.asks.givesUp():
			return result, errors.New("the query of spec.abortWhen is true before anything is broken")
		case result.Began.IsZero() && d.all(func(c *client) bool { return c.steady(now) }):
			d.begin(now)
			result.Began = now
		case result.Began.IsZero():
		case d.asks.givesUp():
			result.ByQuery = true
			fallthrough
		case !d.all(func(c *client) bool { return c.silence(now) < d.AbortAfter }):
			result.Aborted = true
			fallthrough
		case now.Sub(result.Began) >= d.Observe && d.all(func(c *client) bool { return c.writes(now) }):
			result.Ended, result.Clients = now, d.seen(now)
			return result, nil
		}
		if !pause.For(ctx, look) {
			return result, fmt.Errorf("wait until the clients write steadily, and go on: %w", ctx.Err())
		}
	}
}

// begin has what the clients see count from now on.
func (d *drill) begin(now time.Time) {
	for _, c := range d.clients {
		c.begin(now)
	}
	for _, r := range d.readers {
		r.begin()
	}
	d.Log.Info("the clients write steadily")
	d.Steady()
}

// seen is what they have seen until now: each that writes, and last those who only read, as one.
func (d *drill) seen(now time.Time) (out []Client) {
	for _, c := range d.clients {
		out = append(out, c.seen(now))
	}
	if len(d.readers) > 0 {
		out = append(out, ofStandbys(d.readers))
	}
	return out
}

func (d *drill) all(is func(*client) bool) bool {
	for _, c := range d.clients {
		if !is(c) {
			return false
		}
	}
	return true
}

// create makes the schema and the table. An earlier try may have made them.
func (d *drill) create(ctx context.Context, conn *pgx.Conn) error {
	return sql.Do(ctx, conn, "make the table of the drill",
		"CREATE SCHEMA IF NOT EXISTS "+d.Schema+"; CREATE TABLE IF NOT EXISTS "+d.table()+
			" (way text NOT NULL, n bigint NOT NULL, PRIMARY KEY (way, n))")
}

// judge looks which acknowledged writes are there.
func (d *drill) judge(ctx context.Context, result *Result) error {
	for i, c := range d.clients {
		err := d.retry(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			there, err := sql.Column[int64](ctx, conn, "look which writes are there",
				"SELECT n FROM "+d.table()+" WHERE way = $1", c.way.Name)
			if err != nil {
				return err
			}
			of := &result.Clients[i] // the last write may be acknowledged after the end of what it has seen
			of.Acknowledged, of.Lost = int64(len(c.record.acknowledged)), c.record.lost(there)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *drill) drop(ctx context.Context) error {
	return d.retry(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return sql.Do(ctx, conn, fmt.Sprintf("remove the schema %s of the drill", d.Schema),
			"DROP SCHEMA IF EXISTS "+d.Schema+" CASCADE")
	})
}

// retry does something by the first way, until it is done, or it has taken too long.
func (d *drill) retry(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, afterwards)
	defer cancel()
	for {
		err := d.once(ctx, do)
		if err == nil {
			return nil
		}
		d.Log.Warn("tries again", "error", err.Error())
		if !pause.For(ctx, time.Second) {
			return err
		}
	}
}

func (d *drill) once(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, afterwards/4)
	defer cancel()
	conn, err := d.Ways[0].Connect(ctx)
	if err != nil {
		return fmt.Errorf("connect by %s: %w", d.Ways[0].Name, err)
	}
	defer sql.HangUp(conn)
	return do(ctx, conn)
}

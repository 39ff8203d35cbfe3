package upgrade_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// walkSchema is what the clients of a walk write besides what is carried in each test. What each has at last follows
// from the number of the last transaction of each client. A row of the ledger has no key, and one of the audit is made
// by a trigger: both show what was carried twice.
const walkSchema = `create role reader;
set role app;
create table app.ledger (writer int, n int);
alter table app.ledger replica identity full;
create table app.audit (id bigint generated always as identity primary key, writer int, n int);
create function app.audits() returns trigger language plpgsql as
	'begin insert into app.audit (writer, n) values (new.writer, new.n); return null; end';
create trigger audits after insert on app.acknowledged for each row execute function app.audits();
create table app.balance (writer int primary key, n int, double int generated always as (n * 2) stored);
create table app.recent (writer int, n int, primary key (writer, n));
create table app.bulk (writer int, n int, i int, v text, primary key (writer, n, i));
create table app.tickets (id bigint primary key default nextval('app.counter'), writer int);
create table app.parked (n int primary key);
insert into app.balance select w, 0 from generate_series(0, 3) w;
insert into app.parts select -1 - w, '2026-01-01' from generate_series(0, 3) w;
grant usage on schema app to reader;
reset role`

// The kinds of transactions, besides those that are plain.
const (
	inBulk = iota
	emptying
	refreshing
	takingBackAPart
	takingBackAll
	inTwoPhases
	alsoInTwoPhases
	kinds = 20
)

const bulkRows, recentRows = 1500, 10

// kind is that of a transaction of a client: it says what is there at last, so it depends on nothing else.
func kind(writer, n int) int { return (writer*7919 + n*104729) % 1009 % kinds }

// writer is a client that writes one transaction after the other, and knows which were acknowledged.
type writer struct {
	*walk
	id int

	mutex sync.Mutex
	// last is the number of the last transaction that was acknowledged, or was found to be committed. With doubt it is
	// not known of the next one: whoever was to say so has gone.
	last  int
	doubt bool
}

// live writes until it is told to end, and then until it knows of all that it has begun. It connects to whoever serves.
func (c *writer) live(ctx context.Context) {
	for !c.Failed() && (ctx.Err() == nil || c.inDoubt()) {
		conn, generation := c.connect("app", "secret")
		if conn == nil {
			continue
		}
		err := c.resolve(conn)
		for err == nil && ctx.Err() == nil && c.serves(generation) {
			time.Sleep(40 * time.Millisecond) // others use the machine too
			err = c.transaction(conn)
		}
		hangUp(conn)
		if err != nil && !excused(err) {
			c.Errorf("client %d, transaction %d: %v", c.id, c.last+1, err)
		}
	}
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// excused says of an error of a client that a server that dies, or a side that is closed, explains it.
func excused(err error) bool {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return true // the connection is gone
	}
	const readOnly, rejected, busy = "25006", "28000", "55000"
	switch code := said.Code; code {
	case readOnly, rejected:
		return true
	case busy: // a session that has ended still holds what it has prepared
		return strings.Contains(said.Message, "is busy")
	default: // administrators and crashes; deadlocks
		return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08") || code == "40P01"
	}
}

func (c *writer) inDoubt() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.doubt
}

func (c *writer) gid(n int) string { return fmt.Sprintf("walk-%d-%d", c.id, n) }

// resolve finds out whether the transaction was committed of which that is not known. One that is prepared is.
func (c *writer) resolve(conn *pgx.Conn) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.doubt {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var prepared bool
	err := conn.QueryRow(ctx, "select exists (select from pg_prepared_xacts where gid = $1)", c.gid(c.last+1)).
		Scan(&prepared)
	if err == nil && prepared {
		_, err = conn.Exec(ctx, "commit prepared '"+c.gid(c.last+1)+"'")
	}
	if err != nil {
		return err
	}
	return c.find(ctx, conn)
}

// find looks whether the transaction that was in doubt is there. The mutex is held.
func (c *writer) find(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	err := conn.QueryRow(ctx, "select exists (select from app.acknowledged where writer = $1 and n = $2)", c.id,
		c.last+1).Scan(&there)
	if err != nil {
		return err
	}
	if c.doubt = false; there {
		c.last++
	}
	return nil
}

// transaction writes the next one.
func (c *writer) transaction(conn *pgx.Conn) error {
	c.mutex.Lock()
	n := c.last + 1
	c.doubt = true
	c.mutex.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if kind(c.id, n) == takingBackAll {
		if err := run(ctx, conn, append(c.statements(n), "rollback")...); err != nil {
			return err
		}
	}
	ends := []string{"commit"}
	if k := kind(c.id, n); k == inTwoPhases || k == alsoInTwoPhases {
		ends = []string{"prepare transaction '" + c.gid(n) + "'", "commit prepared '" + c.gid(n) + "'"}
	}
	if err := run(ctx, conn, append(c.statements(n), ends...)...); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last, c.doubt = n, false
	return nil
}

func run(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// day is where the row of a client in the partitioned table is after a transaction.
func day(n int) string { return fmt.Sprintf("date '2026-01-01' + %d", n*37%360) }

// statements are those of a transaction, without its end.
func (c *writer) statements(n int) []string {
	all := []string{
		"begin",
		fmt.Sprintf("insert into app.acknowledged values (%d, %d)", c.id, n),
		fmt.Sprintf("insert into app.ledger values (%d, %d)", c.id, n),
		fmt.Sprintf("update app.balance set n = %d where writer = %d", n, c.id),
		fmt.Sprintf("insert into app.recent values (%d, %d)", c.id, n),
		fmt.Sprintf("delete from app.recent where writer = %d and n <= %d", c.id, n-recentRows),
		fmt.Sprintf("update app.parts set day = %s where id = %d", day(n), -1-c.id),
		fmt.Sprintf("insert into app.tickets (writer) values (%d)", c.id),
		"insert into app.orders (item, n, doc, price) values ('new', 1, '{\"a\": [1, 2]}', random())",
		fmt.Sprintf("update app.orders set n = n + 1, f = random() where id = %d", 1+rand.IntN(50)*writers+c.id),
		fmt.Sprintf(`insert into app."Quoted ""name""" values (default, '\x%04x')`, rand.IntN(1<<16)),
		fmt.Sprintf("insert into app.full values (%d, 'tab\t line\nend')", c.id),
	}
	switch kind(c.id, n) {
	case inBulk:
		all = append(all, fmt.Sprintf("insert into app.bulk select %d, %d, i, repeat(md5(i::text), 5) "+
			"from generate_series(1, %d) i", c.id, n, bulkRows),
			fmt.Sprintf("delete from app.bulk where writer = %d and n < %d", c.id, n))
	case emptying:
		all = append(all, "truncate app.emptied", fmt.Sprintf("insert into app.emptied values (%d, null)", n))
	case refreshing:
		all = append(all, "refresh materialized view app.totals")
	case takingBackAPart:
		all = append(all, "savepoint here", fmt.Sprintf("insert into app.ledger values (%d, %d)", c.id, -n),
			"rollback to here")
	}
	return all
}

// has looks whether all that was acknowledged to this client is there, and nothing else, and nothing twice.
func (c *writer) has(ctx context.Context, conn *pgx.Conn) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.doubt {
		if err := c.find(ctx, conn); err != nil {
			return err
		}
	}
	all, twice := fmt.Sprintf("%d %[1]d", c.last), fmt.Sprintf("%d %d", c.last, 2*c.last)
	const both = "select count(*) || ' ' || count(distinct n) from app."
	const upTo = "select count(*) || ' ' || coalesce(max(n), 0) from app."
	recent := fmt.Sprintf("%d %d", min(c.last, recentRows), c.last)
	for query, want := range map[string]string{
		upTo + "acknowledged": all, both + "ledger": all, both + "audit": all, upTo + "recent": recent,
		upTo + "bulk": c.bulk(), "select count(*)::text from app.tickets": fmt.Sprint(c.last),
		"select n || ' ' || double from app.balance":                                                  twice,
		"select (count(*) = 1)::text from app.parts where day = " + day(c.last) + " and id = -1 - $1": "true",
	} {
		if !strings.Contains(query, "where") {
			query += " where writer = $1"
		}
		var got string
		if err := conn.QueryRow(ctx, query, c.id).Scan(&got); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if got != want {
			return fmt.Errorf("of client %d, whose transaction %d was the last to be acknowledged: %s is %s, want %s",
				c.id, c.last, query, got, want)
		}
	}
	return nil
}

// bulk is what is there of the last transaction with many rows: how many, and its number.
func (c *writer) bulk() string {
	for n := c.last; n > 0; n-- {
		if kind(c.id, n) == inBulk {
			return fmt.Sprintf("%d %d", bulkRows, n)
		}
	}
	return "0 0"
}

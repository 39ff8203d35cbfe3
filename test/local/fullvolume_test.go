package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// PostgreSQL's codes for a write in a transaction that only reads, and for a session that was ended (documentation of
// 17, appendix A).
const readOnlyTransaction, adminShutdown = "25006", "57P01"

// onSmallVolumes is a cluster of three on volumes of 512 MiB each, with an application's role and database.
func onSmallVolumes(t *testing.T) (c *cluster, leader string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to make a small volume")
	}
	t.Parallel()
	c = newCluster(t, 3)
	c.config.Parameters["min_wal_size"], c.config.Parameters["max_wal_size"] = "32MB", "64MB"
	for _, name := range c.names() {
		c.smallVolume(c.disk(name), "512m")
	}
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	leader = c.whole()
	c.exec(leader, "create role app login password 'app'", "create database app owner app")
	c.mustApp(leader, "create table filled (words text)", "create table few (n int)")
	return c, leader
}

// app opens a session of the application.
func (c *cluster) app(name string) (*pgx.Conn, error) { return c.as(name, "app") }

// as opens a session of a user with the application's database, whose password is the application's.
func (c *cluster) as(name, user string) (*pgx.Conn, error) {
	ordinal, _ := naming.Ordinal(name)
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s password=app dbname=app connect_timeout=5",
		c.host(ordinal), naming.PortPostgreSQL, user))
	if err != nil {
		return nil, err
	}
	config.TLSConfig, config.Fallbacks = c.databaseTLS(c.host(ordinal)), nil
	return pgx.ConnectConfig(c.Context(), config)
}

// appDoes runs statements in a session of the application, up to the first that fails.
func (c *cluster) appDoes(name string, statements ...string) error {
	conn, err := c.app(name)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(c.Context(), sql); err != nil {
			return fmt.Errorf("%s on %s: %w", sql, name, err)
		}
	}
	return nil
}

func (c *cluster) mustApp(name string, statements ...string) {
	c.Helper()
	c.must(c.appDoes(name, statements...))
}

// refused waits until the application's writes are refused on the primary, which says so, and serves those who read.
func (c *cluster) refused(leader string) {
	c.Helper()
	c.await(leader, "a primary that takes no writes", func(s protocol.Status) bool { return primary(s) && s.ReadOnly })
	if err := c.appDoes(leader, "insert into few values (1)"); codeOf(err) != readOnlyTransaction {
		c.Errorf("a write on a primary that takes none gives %v", err)
	}
	c.mustApp(leader, "select count(*) from few")
}

// emptied has the application make room, as the condition says how, and waits until it is written again.
func (c *cluster) emptied(leader string) {
	c.Helper()
	c.mustApp(leader, "set default_transaction_read_only = off", "truncate filled")
	c.written(leader)
}

// written waits until the primary takes writes again, and has its reserve.
func (c *cluster) written(leader string) {
	c.Helper()
	c.await(leader, "a primary that takes writes", func(s protocol.Status) bool { return primary(s) && !s.ReadOnly })
	c.mustApp(leader, "insert into few values (1)")
	for end := time.Now().Add(deadline); ; time.Sleep(100 * time.Millisecond) {
		held, err := os.Stat(filepath.Join(c.disk(leader), "toban", "reserve"))
		if err == nil && held.Size() == 32<<20 {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("there is no reserve again: %v", err)
		}
	}
}

// codeOf is PostgreSQL's code of an error, "" for none.
func codeOf(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// Volumes get full in every way: by many transactions, by one statement, by what somebody else has put there. The
// primary takes no writes before its volume is full. Nothing ends but the statement, those who read are served, and it
// goes on by itself when there is room. (TestAVolumeThatGetsFullAtOnce, TestAVolumeThatIsFull and
// TestAWALVolumeThatGetsFull touch the same.)
func TestLongAVolumeThatGetsFull(t *testing.T) {
	c, leader := onSmallVolumes(t)
	before := c.postmaster(leader)
	slowly := "insert into filled select repeat(md5(random()::text || n), 32) from generate_series(1, %d) n " +
		"where n %% 32 > 0 or pg_sleep(0.001) is not null" // at most 32 rows of a KiB in a millisecond
	for name, fill := range map[string]func() error{
		"many transactions": func() error {
			for range 1000 {
				if err := c.appDoes(leader, fmt.Sprintf(slowly, 1000)); err != nil {
					return err
				}
			}
			return nil
		},
		"one statement": func() error { return c.appDoes(leader, fmt.Sprintf(slowly, 1000000)) },
	} {
		err := fill()
		if code := codeOf(err); code != readOnlyTransaction && code != adminShutdown {
			t.Errorf("%s: filling the volume ends with %v", name, err)
		}
		c.refused(leader)
		c.emptied(leader)
	}
	filling := c.fill(c.disk(leader))
	c.refused(leader)
	for end := time.Now().Add(deadline); !strings.Contains(c.logs[leader].String(), "the reserve was given back"); {
		if time.Now().After(end) {
			t.Fatal("the reserve was not given back to a volume that somebody else had filled")
		}
		time.Sleep(100 * time.Millisecond)
		c.fill(c.disk(leader)) // the server may have removed a WAL file meanwhile
	}
	c.must(os.Remove(filling))
	c.written(leader)
	if now := c.postmaster(leader); now != before {
		t.Errorf("the server was started again: %d, before %d", now, before)
	}
	if now := c.whole(); now != leader {
		t.Errorf("%s leads, before %s did", now, leader)
	}
}

// One statement fills the volumes as fast as it can, which may be faster than an agent on a busy machine sees it, so
// servers may end. With the reserve they start again, and nothing is lost that was acknowledged.
func TestAVolumeThatGetsFullAtOnce(t *testing.T) {
	c, leader := onSmallVolumes(t)
	w := c.write3()
	w.goesOn()
	err := c.appDoes(leader, "alter table filled alter words set storage plain",
		"insert into filled select repeat(md5(n::text), 200) from generate_series(1, 200000) n")
	t.Logf("filling the volume ends with %v", err)
	if err == nil {
		t.Error("1.2 GB fit on a volume of 512 MiB")
	}
	// To read what was never read is to write WAL, too.
	t.Logf("reading it all ends with %v", c.appDoes(c.leader(), "select count(*) from filled"))
	leader = c.leader()
	room := func() error { return c.appDoes(leader, "set default_transaction_read_only = off", "truncate filled") }
	for end := time.Now().Add(deadline); ; time.Sleep(time.Second) {
		if err = room(); err == nil {
			break
		}
		if leader = c.leader(); time.Now().After(end) {
			t.Fatalf("no room can be made: %v", err)
		}
	}
	w.goesOn()
	w.check(outside.Bound{Event: "when room has to be made", Most: deadline})
}

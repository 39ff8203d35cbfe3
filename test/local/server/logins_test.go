package server_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/postgres"
	"toban.dev/test/local/aspostgres"
)

// slow is a connection that holds back what a client writes in its last step of logging in, until it is let go.
type slow struct {
	net.Conn
	writes     atomic.Int32
	held, free chan struct{}
}

func (c *slow) Write(p []byte) (int, error) {
	if c.writes.Add(1) == 3 { // what it is, the beginning of SCRAM, and the answer
		close(c.held)
		<-c.free
	}
	return c.Conn.Write(p)
}

// writes logs in, and writes a row. It waits in the middle of the login.
func (n *node) writes(role string, row int) (c *slow, out chan error) {
	n.Helper()
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=postgres sslmode=disable", n.Listen,
		n.Port, role))
	must(n, err)
	config.Password = role + "'s password"
	c, out = &slow{held: make(chan struct{}), free: make(chan struct{})}, make(chan error, 1)
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		c.Conn = conn
		return c, err
	}
	go func() {
		conn, err := pgconn.ConnectConfig(context.WithoutCancel(n.Context()), config)
		if err == nil {
			_, err = conn.Exec(n.Context(), fmt.Sprintf("insert into acked values (%d)", row)).ReadAll()
			_ = conn.Close(context.Background())
		}
		out <- err
	}()
	select {
	case <-c.held:
	case <-time.After(deadline):
		n.Fatal("the client does not come to its answer")
	}
	return c, out
}

// Who is logging in while the server is closed, or has only connected, has the former pg_hba.conf. He is counted, and
// ended; so is a person who is the superuser. No commit is acknowledged to any of them.
func TestWhoIsLoggingInWhenAServerClosesDoesNotGetIn(t *testing.T) {
	for _, major := range []int{15, 17, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			bin := aspostgres.Release(major)
			if !filepath.IsAbs(bin) {
				t.Skip(bin)
			}
			n := nodes(t, 1)[0]
			n.Programs = postgres.Programs{Dir: bin, Major: major}
			n.found()
			n.settings.HBA = []string{"host all app all scram-sha-256"}
			n.configure()
			n.do("create role app login password 'app''s password'")
			n.do("grant connect on database postgres to app")
			n.do("create table acked (n int)")
			n.do("grant insert on acked to app")
			n.loggingInEnds()
		})
	}
}

// loggingInEnds closes the server while somebody is in each step of logging in.
func (n *node) loggingInEnds() {
	n.Helper()
	slow, written := n.writes("app", 1)
	silent, err := net.Dial("tcp", net.JoinHostPort(n.Listen, strconv.Itoa(n.Port)))
	must(n, err)
	defer silent.Close()
	person := n.person("kubectl toban psql")
	ours := n.person("toban init")
	n.settings.Closed = true
	n.configure()
	closed := time.Now()
	s := n.session()
	defer s.Close()
	end := func() (logins, clients int) {
		logins, err := n.process.EndLogins(time.Since(closed), func(pids []int) ([]int, error) {
			return s.NotIn(n.Context(), pids)
		})
		must(n, err)
		clients, err = s.EndClients(n.Context())
		must(n, err)
		return logins, clients
	}
	// A session that has just ended may be counted too: on a slow machine its process goes a moment later.
	if logins, clients := end(); logins < 2 || clients < 1 {
		n.Errorf("%d were logging in and %d clients were there, want 2 and 1", logins, clients)
	}
	n.eventually("nobody is there", func() bool { logins, clients := end(); return logins+clients == 0 })
	close(slow.free)
	if err := <-written; err == nil {
		n.Error("a row was acknowledged to one who was logging in")
	}
	if _, err := person.Exec(n.Context(), "insert into acked values (2)"); err == nil {
		n.Error("a row was acknowledged to a person with psql")
	}
	for _, statement := range []string{"set default_transaction_read_only = off", "insert into acked values (3)"} {
		if _, err := ours.Exec(n.Context(), statement); err != nil {
			n.Errorf("a session of ours can't go on: %v", err)
		}
	}
	if code := code(second(n.person("psql").Exec(n.Context(), "insert into acked values (4)"))); code != readOnly {
		n.Errorf("before a person is ended, he may write: %q", code)
	}
	if got := n.ask("select string_agg(n::text, ' ') from acked"); got != "3" {
		n.Errorf("there are the rows %s", got)
	}
}

// readOnly is read_only_sql_transaction.
const readOnly = "25006"

func second[T any](_ T, err error) error { return err }

// person opens a superuser's session by the socket, as psql does.
func (n *node) person(application string) *pgx.Conn {
	n.Helper()
	conn, err := pgx.Connect(n.Context(), fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=disable "+
		"application_name='%s'", n.Server.Run, n.Port, application))
	must(n, err)
	n.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// A client that begins to log in when the server is closed already is refused by itself, and nobody waits for it.
func TestWhoComesLaterIsNotWaitedFor(t *testing.T) {
	n := server(t)
	n.settings.Closed = true
	n.configure()
	s := n.session()
	defer s.Close()
	logins := func(older time.Duration) int {
		found, err := n.process.EndLogins(older, func(pids []int) ([]int, error) { return s.NotIn(t.Context(), pids) })
		must(t, err)
		return found
	}
	n.eventually("the sessions that have just ended are gone", func() bool { return logins(0) == 0 })
	closed := time.Now()
	time.Sleep(50 * time.Millisecond) // the kernel's clock for processes is coarse
	silent, err := net.Dial("tcp", net.JoinHostPort(n.Listen, strconv.Itoa(n.Port)))
	must(t, err)
	defer silent.Close()
	var before int
	n.eventually("it is seen that one logs in", func() bool {
		before += logins(time.Since(closed))
		return logins(0) == 1
	})
	if before > 0 {
		t.Errorf("%d are said to have begun before", before)
	}
}

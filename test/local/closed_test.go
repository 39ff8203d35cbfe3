package local

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/protocol"
)

// Before the last backup of a SampleDB that is deleted, and before sides change, no client is there any more, and none
// gets in: neither a person who is the superuser, nor one who was logging in.
func TestAClosedClusterEndsItsClients(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	leader := c.leader()
	c.exec(leader, createReader)
	session, err := pgx.Connect(t.Context(), c.reader(leader))
	c.must(err)
	defer session.Close(t.Context())
	person, err := c.connect(leader) // as kubectl toban psql
	c.must(err)
	defer person.Close(t.Context())
	goOn, entered := c.lateReader(leader)
	c.config.Closed = true
	c.sync()
	c.await(leader, "closed", func(s protocol.Status) bool { return s.Closed })
	goOn()
	if err := <-entered; err == nil {
		t.Error("a client gets in that was logging in")
	}
	for who, conn := range map[string]*pgx.Conn{"a client": session, "a person with psql": person} {
		if _, err := conn.Exec(t.Context(), "select 1"); err == nil {
			t.Errorf("%s is still there", who)
		}
	}
	if _, err := pgx.Connect(t.Context(), c.reader(leader)); err == nil ||
		!strings.Contains(err.Error(), "pg_hba.conf rejects") {
		t.Errorf("a client gets in, or something else is wrong: %v", err)
	}
	c.config.Closed = false
	c.sync()
	c.await(leader, "open", func(s protocol.Status) bool { return !s.Closed })
	again, err := pgx.Connect(t.Context(), c.reader(leader))
	c.must(err)
	c.must(again.Close(t.Context()))
}

// lateReader is one who has connected, and says who he is only when he is told to go on.
func (c *cluster) lateReader(name string) (goOn func(), entered <-chan error) {
	c.Helper()
	config, err := pgx.ParseConfig(c.reader(name))
	c.must(err)
	host, port := config.Host, strconv.Itoa(int(config.Port))
	connected, err := net.Dial("tcp", net.JoinHostPort(host, port))
	c.must(err)
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return connected, nil }
	config.Fallbacks = nil
	out := make(chan error, 1)
	return func() {
		conn, err := pgx.ConnectConfig(context.Background(), config)
		if err == nil {
			_, err = conn.Exec(context.Background(), "select 1")
			_ = conn.Close(context.Background())
		}
		out <- err
	}, out
}

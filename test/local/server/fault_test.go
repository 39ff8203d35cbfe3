package server_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/work/drill"
)

// breakable is the node's process, as an agent breaks it for a FaultDrill.
type breakable interface {
	Crash() error
	Hang() error
	Continue() error
}

// answers says whether the server answers a query within a while.
func answers(conn *pgx.Conn, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return conn.Ping(ctx)
}

func TestAServerHangsAndGoesOn(t *testing.T) {
	n := server(t)
	var process breakable = n.process
	before, other := n.dial(), n.dial()
	defer before.Close(context.Background())
	must(t, process.Hang())
	if err := answers(other, 500*time.Millisecond); err == nil {
		t.Error("a session answers")
	}
	postmaster := n.postmaster()
	must(t, process.Continue())
	if err := answers(before, deadline); err != nil {
		t.Errorf("a session that was there does not go on: %v", err)
	}
	must(t, n.dial().Close(context.Background()))
	if n.postmaster() != postmaster {
		t.Error("it was restarted")
	}
}

func TestAServerThatCrashesEndsAsByItself(t *testing.T) {
	n := server(t)
	n.do("CREATE TABLE t AS SELECT 1")
	must(t, n.process.Crash())
	select {
	case <-n.process.Done():
	case <-time.After(deadline):
		t.Fatal("it runs")
	}
	n.process = nil
	n.lead("")
	if got := n.ask("SELECT count(*)::text FROM t"); got != "1" {
		t.Errorf("%s rows are there", got)
	}
}

// The clients of a drill see how long nobody wrote, and what is lost.
func TestADrillMeasuresAnOutage(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	login := func(ctx context.Context) (*pgx.Conn, error) { return n.loginWithin(ctx, "foo", "mypassword", "foo") }
	const hangs = 1500 * time.Millisecond
	options := drill.Options{
		Ways: []drill.Way{{Name: "Service", Connect: login}, {Name: "Hosts", Connect: login}}, Schema: "toban_drill_x",
		Observe: 5 * time.Second, AbortAfter: time.Minute, Log: slog.New(slog.DiscardHandler),
		Steady: func() {
			must(t, n.process.Hang())
			time.AfterFunc(hangs, func() { _ = n.process.Continue() })
		},
	}
	result, err := drill.Run(t.Context(), options)
	must(t, err)
	if result.Aborted || len(result.Clients) != 2 || result.Ended.Sub(result.Began) < options.Observe {
		t.Errorf("the result is %+v", result)
	}
	for _, c := range result.Clients {
		if c.Outage < hangs || c.Acknowledged < 10 || c.Lost != 0 || c.Reads < 10 || c.StaleReads != 0 {
			t.Errorf("a client has seen %+v", c)
		}
	}
	none := func() {
		t.Helper()
		conn := n.mustLogin("foo", "mypassword", "foo")
		if got := sql(t, conn, "CREATE SCHEMA toban_drill_x", "DROP SCHEMA toban_drill_x"); got != "" {
			t.Errorf("its schema is left: %s", got)
		}
	}
	none()
	stopped, stop := context.WithCancel(t.Context())
	options.Steady = stop
	if _, err := drill.Run(stopped, options); err == nil {
		t.Error("it has a result, though it was stopped")
	}
	none()
	options.Steady, options.AbortAfter = func() { must(t, n.process.Hang()) }, time.Second
	aborted := make(chan drill.Result, 1)
	go func() {
		result, _ := drill.Run(t.Context(), options)
		aborted <- result
	}()
	time.AfterFunc(10*time.Second, func() { _ = n.process.Continue() }) // for the look at what is there
	if result = <-aborted; !result.Aborted || result.Clients[0].Outage < time.Second {
		t.Errorf("it was not given up: %+v", result)
	}
}

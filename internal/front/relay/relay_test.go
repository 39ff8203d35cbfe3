package relay

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// world has a relay, and instances by their hosts.
type world struct {
	t       *testing.T
	relay   *Relay
	at      string
	told    atomic.Pointer[[]protocol.InstanceTells]
	wanted  atomic.Bool
	listens atomic.Bool
	silence atomic.Int64
	servers map[string]*server
}

// server answers each line with its name and the line, unless it is mute or quits. It counts who comes.
type server struct {
	name    string
	address string
	mute    atomic.Bool
	quits   atomic.Bool
	came    atomic.Int32
	heard   chan string
}

func newServer(t *testing.T, name string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &server{name: name, address: listener.Addr().String(), heard: make(chan string, 100)}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			s.came.Add(1)
			go s.serve(client)
		}
	}()
	return s
}

func (s *server) serve(client net.Conn) {
	defer client.Close()
	lines := bufio.NewScanner(client)
	for lines.Scan() {
		s.heard <- lines.Text()
		if lines.Text() == "quit" || s.quits.Load() {
			return
		}
		if !s.mute.Load() {
			fmt.Fprintf(client, "%s: %s\n", s.name, lines.Text())
		}
	}
}

// begin runs a relay until the test ends, with instances a, b and c.
func begin(t *testing.T) *world {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().String()
	_ = listener.Close()
	w := &world{t: t, at: at, servers: map[string]*server{}}
	for _, name := range []string{"a", "b", "c"} {
		w.servers[name] = newServer(t, name)
	}
	w.wanted.Store(true)
	w.relay = &Relay{
		ListenAt: func(ctx context.Context, _ string) (net.Listener, error) {
			return (&net.ListenConfig{}).Listen(ctx, "tcp", at)
		},
		Wanted: w.wanted.Load, Changed: w.listens.Store,
		Told: func() []protocol.InstanceTells {
			if told := w.told.Load(); told != nil {
				return *told
			}
			return nil
		},
		Silence: func(string) time.Duration { return time.Duration(w.silence.Load()) },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			return (&net.Dialer{}).DialContext(ctx, network, w.servers[host].address)
		},
		Log: slog.New(slog.DiscardHandler),
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.relay.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	w.until("it listens", w.listens.Load)
	return w
}

func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("not in 20 seconds: %s", what)
		}
	}
}

// lead has an instance lead in a term.
func (w *world) lead(name string, term uint64) {
	w.told.Store(&[]protocol.InstanceTells{{Name: name, Address: name, Leads: true, Term: term}})
}

// client is one that talks through the relay.
type client struct {
	net.Conn
	t     *testing.T
	lines *bufio.Reader
}

func (w *world) client() *client {
	w.t.Helper()
	conn, err := net.Dial("tcp", w.at)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{conn, w.t, bufio.NewReader(conn)}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hears(want string) {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if got := strings.TrimSpace(line); err != nil || got != want {
		c.t.Fatalf("the client hears %q (%v), want %q", got, err, want)
	}
}

// asks says a line, and expects that answer.
func (c *client) asks(line, answer string) {
	c.t.Helper()
	c.say(line)
	c.hears(answer)
}

// passing waits until so many clients are passed on, or wait for that.
func (w *world) passing(clients int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%d clients are there", clients), func() bool {
		w.relay.mutex.Lock()
		defer w.relay.mutex.Unlock()
		return len(w.relay.passing) == clients
	})
}

// ends says that the connection has been closed.
func (c *client) ends() {
	c.t.Helper()
	if left, err := io.ReadAll(c.lines); len(left) > 0 || isTimeout(err) {
		c.t.Fatalf("the connection goes on: %q, %v", left, err)
	}
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error) //nolint:errorlint // as net returns it
	return ok && timeout.Timeout()
}

func TestClientsArePassedOnToTheLeader(t *testing.T) {
	w := begin(t)
	w.lead("b", 4)
	c := w.client()
	for i := range 3 {
		c.say(fmt.Sprint("hello ", i))
		c.hears(fmt.Sprint("b: hello ", i))
	}
	big := strings.Repeat("x", 50<<10)
	c.say(big)
	c.hears("b: " + big)
	c.say("quit")
	c.ends()
	if w.servers["a"].came.Load()+w.servers["c"].came.Load() != 0 {
		t.Error("somebody came to one that does not lead")
	}
}

// A server hears that its client has gone, and ends; nothing of it is left in the relay.
func TestThatAClientHasGoneIsPassedOn(t *testing.T) {
	w := begin(t)
	w.lead("a", 1)
	c := w.client()
	c.asks("hello", "a: hello")
	c.asks("again", "a: again") // from now on nothing is kept
	_ = c.Close()
	w.passing(0)
}

func TestClientsWaitWhileNobodyLeads(t *testing.T) {
	w := begin(t)
	c, gone := w.client(), w.client()
	c.say("hello")
	gone.say("I do not wait")
	w.passing(2)
	_ = gone.Close()
	w.passing(1)
	w.lead("c", 7)
	c.hears("c: hello")
	if came := w.servers["c"].came.Load(); came != 1 {
		t.Errorf("%d came to the leader: also one that has gone", came)
	}
}

// What was said to a leader that has not answered is said to the next one.
func TestAServerThatSaysNothingIsLeftForTheNext(t *testing.T) {
	w := begin(t)
	w.servers["a"].mute.Store(true)
	w.lead("a", 4)
	c := w.client()
	c.say("hello")
	select {
	case heard := <-w.servers["a"].heard:
		if heard != "hello" {
			t.Fatalf("it hears %q", heard)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it hears nothing")
	}
	w.lead("b", 5)
	c.hears("b: hello")
	c.asks("again", "b: again")
}

// A session that has begun on an instance of a former term ends: what it has done there is for its client to ask.
func TestASessionEndsWhenAnotherLeads(t *testing.T) {
	w := begin(t)
	w.lead("a", 4)
	c := w.client()
	c.asks("hello", "a: hello")
	w.lead("a", 6) // it was elected again
	w.until("that is known", func() bool {
		w.relay.mutex.Lock()
		defer w.relay.mutex.Unlock()
		return w.relay.route.Term == 6
	})
	c.asks("still here", "a: still here")
	w.lead("b", 7)
	c.ends()
}

func TestNobodyIsPassedOnToAFormerLeader(t *testing.T) {
	w := begin(t)
	w.lead("b", 5)
	first := w.client()
	first.asks("hello", "b: hello")
	w.lead("a", 4)
	c := w.client()
	c.say("hello")
	time.Sleep(4 * look) // nothing is to happen
	if w.servers["a"].came.Load() != 0 {
		t.Fatal("it came to a former leader")
	}
	w.lead("c", 6)
	c.hears("c: hello")
}

// When clients are not to be passed on any more, those who are stay.
func TestWhoIsPassedOnStaysWhenThatIsNotWantedAnyMore(t *testing.T) {
	w := begin(t)
	w.lead("a", 1)
	c := w.client()
	c.asks("hello", "a: hello")
	w.wanted.Store(false)
	w.until("it does not listen", func() bool { return !w.listens.Load() })
	if conn, err := net.Dial("tcp", w.at); err == nil {
		_ = conn.Close()
		t.Error("it still takes clients")
	}
	c.asks("again", "a: again")
	w.wanted.Store(true)
	w.until("it listens again", w.listens.Load)
	again := w.client()
	again.asks("hello", "a: hello")
}

// A server that refuses is tried again: it may be about to start.
func TestALeaderThatIsNotReachedIsTriedAgain(t *testing.T) {
	w := begin(t)
	refusing, _ := net.Listen("tcp", "127.0.0.1:0")
	w.servers["d"] = &server{address: refusing.Addr().String()}
	_ = refusing.Close()
	w.lead("d", 4)
	c := w.client()
	c.say("hello")
	time.Sleep(2 * look) // it is tried in vain
	w.lead("b", 5)
	c.hears("b: hello")
}

// Of an instance that is cut off nothing is heard, and TCP would wait for it for a quarter of an hour.
func TestASessionEndsWhenNothingIsHeardOfItsInstance(t *testing.T) {
	w := begin(t)
	w.lead("a", 4)
	c := w.client()
	c.asks("hello", "a: hello")
	w.silence.Store(int64(silent - time.Second))
	time.Sleep(4 * look) // nothing is to happen
	c.asks("still here", "a: still here")
	w.silence.Store(int64(silent + time.Second))
	c.ends()
	w.passing(0)
}

// A server that ends a connection in order, and has said nothing, has not served the client: it is being stopped.
func TestAServerThatEndsWithoutAWordIsLeftForTheNext(t *testing.T) {
	w := begin(t)
	w.servers["a"].quits.Store(true)
	w.lead("a", 4)
	c := w.client()
	c.say("hello")
	w.until("it has ended a connection", func() bool { return w.servers["a"].came.Load() > 0 })
	w.lead("b", 5)
	if line, err := c.lines.ReadString('\n'); err == nil && line != "b: hello\n" {
		t.Errorf("the client hears %q", line)
	} else if err != nil && w.servers["a"].came.Load() <= mostEnds {
		t.Errorf("after %d of %d ends: %v", w.servers["a"].came.Load(), mostEnds, err)
	}
	w.lead("a", 6)
	before := w.servers["a"].came.Load()
	other := w.client()
	other.say("not PostgreSQL's")
	other.ends()
	if came := w.servers["a"].came.Load() - before; came != mostEnds+1 {
		t.Errorf("who is not understood came %d times", came)
	}
}

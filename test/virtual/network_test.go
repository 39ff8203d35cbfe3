package virtual

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// link is the way from one place to another: names of instances, "operator" or "api".
type link struct{ from, to string }

// network carries bytes, and the messages of PostgreSQL's model, between places. It is like TCP: what is sent arrives
// in its order, and on a link that is cut it waits.
type network struct {
	w         *world
	mutex     sync.Mutex
	listeners map[string]*listener
	cut       map[link]time.Time     // since when
	slow      map[link]time.Duration // by how much
	refused   map[link]bool
	changed   chan struct{}
}

func newNetwork(w *world) *network {
	return &network{w: w, listeners: map[string]*listener{}, cut: map[link]time.Time{}, slow: map[link]time.Duration{},
		refused: map[link]bool{}, changed: make(chan struct{})}
}

// change changes the links, and has everybody look at them again.
func (n *network) change(do func()) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	do()
	close(n.changed)
	n.changed = make(chan struct{})
}

// isCut says whether a link is cut, and what is closed when that may have changed.
func (n *network) isCut(l link) (bool, <-chan struct{}) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	_, is := n.cut[l]
	return is, n.changed
}

// works says that two places reach each other both ways.
func (n *network) works(a, b string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	_, there := n.cut[link{a, b}]
	_, back := n.cut[link{b, a}]
	return !there && !back && !n.refused[link{a, b}] && n.slow[link{a, b}]+n.slow[link{b, a}] == 0
}

// hear says that two places hear each other, however slowly.
func (n *network) hear(a, b string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	_, there := n.cut[link{a, b}]
	_, back := n.cut[link{b, a}]
	return !there && !back
}

// dead says that a link has been cut, in either direction, for longer than a stream waits for the network.
func (n *network) dead(l link, patience time.Duration) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, way := range []link{l, {l.to, l.from}} {
		if since, is := n.cut[way]; is && time.Since(since) >= patience {
			return true
		}
	}
	return false
}

// latency is how long something takes now on a link.
func (n *network) latency(l link) time.Duration {
	n.mutex.Lock()
	slow := n.slow[l]
	n.mutex.Unlock()
	return n.w.between("net"+l.from+l.to, 50*time.Microsecond, 2*time.Millisecond) + slow + n.w.late(l.from+l.to)
}

// travel waits for as long as something takes on a link.
func (n *network) travel(ctx context.Context, l link) error {
	if err := pause(ctx, n.latency(l)); err != nil {
		return err
	}
	for {
		is, changed := n.isCut(l)
		if !is {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// pause waits; the error is ctx's.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// listener is a port that somebody listens at.
type listener struct {
	n       *network
	address string
	arrived chan *conn
	closed  chan struct{}
	once    sync.Once
}

func (n *network) listen(address string) (*listener, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.listeners[address] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{n: n, address: address, arrived: make(chan *conn, 1000), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// Accept is net.Listener's.
func (l *listener) Accept() (net.Conn, error) { return l.accept() }

func (l *listener) accept() (*conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	case c := <-l.arrived:
		return c, nil
	}
}

// Close is net.Listener's.
func (l *listener) Close() error {
	l.once.Do(func() {
		l.n.mutex.Lock()
		defer l.n.mutex.Unlock()
		if l.n.listeners[l.address] == l {
			delete(l.n.listeners, l.address)
		}
		close(l.closed)
		for len(l.arrived) > 0 {
			_ = (<-l.arrived).Close()
		}
	})
	return nil
}

// Addr is net.Listener's.
func (l *listener) Addr() net.Addr { return place(l.address) }

// place is an address.
type place string

// Network and String are net.Addr's.
func (p place) Network() string { return "virtual" }
func (p place) String() string  { return string(p) }

// dialTimeout is that of an agent's client, and of a server's connections.
const dialTimeout = 2 * time.Second

// dial connects a place to an address, which begins with the name of an instance.
func (n *network) dial(ctx context.Context, from, address string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(host, ".")
	to := link{from, name}
	if err := n.travel(ctx, to); err != nil {
		return nil, err
	}
	here, there := n.pair(to)
	n.mutex.Lock()
	l, refused := n.listeners[net.JoinHostPort(name, port)], n.refused[to]
	n.mutex.Unlock()
	if l != nil && !refused {
		l.arrived <- there
	}
	if err := n.travel(ctx, link{name, from}); err != nil {
		return nil, errors.Join(err, here.Close())
	}
	if l == nil || refused {
		return nil, syscall.ECONNREFUSED
	}
	return here, nil
}

// packet is what is on its way, and when it arrives. One without anything in it says that there is no more.
type packet struct {
	at      time.Time
	content any
}

// half is one direction of a connection.
type half struct {
	mutex sync.Mutex
	queue []packet
	// poke says that there is something new, or another deadline.
	poke chan struct{}
}

func (h *half) wake() {
	select {
	case h.poke <- struct{}{}:
	default:
	}
}

// conn is one end of a connection. What is written is never waited for.
type conn struct {
	n        *network
	way      link // from here
	in, out  *half
	mutex    sync.Mutex
	closed   bool
	deadline time.Time
	rest     []byte
}

func (n *network) pair(l link) (here, there *conn) {
	a, b := &half{poke: make(chan struct{}, 1)}, &half{poke: make(chan struct{}, 1)}
	return &conn{n: n, way: l, in: a, out: b}, &conn{n: n, way: link{l.to, l.from}, in: b, out: a}
}

// send sends something.
func (c *conn) send(content any) error {
	c.mutex.Lock()
	closed := c.closed
	c.mutex.Unlock()
	if closed {
		return net.ErrClosed
	}
	at := time.Now().Add(c.n.latency(c.way))
	c.out.mutex.Lock()
	if last := len(c.out.queue) - 1; last >= 0 && c.out.queue[last].at.After(at) {
		at = c.out.queue[last].at
	}
	c.out.queue = append(c.out.queue, packet{at, content})
	c.out.mutex.Unlock()
	c.out.wake()
	return nil
}

// receive waits for what comes next. A patience of 0 waits for ever on a link that is cut.
func (c *conn) receive(ctx context.Context, patience time.Duration) (any, error) {
	for {
		cut, changed := c.n.isCut(link{c.way.to, c.way.from})
		content, wait, err := c.next(cut)
		if err != nil || content != nil {
			return content, err
		}
		if patience > 0 && c.n.dead(c.way, patience) {
			return nil, syscall.ETIMEDOUT
		}
		if patience > 0 {
			wait = min(wait, 250*time.Millisecond)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.in.poke:
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// next is what has arrived, or how long to wait for it.
func (c *conn) next(cut bool) (content any, wait time.Duration, err error) {
	c.mutex.Lock()
	closed, deadline := c.closed, c.deadline
	c.mutex.Unlock()
	wait = time.Hour
	if closed {
		return nil, 0, net.ErrClosed
	}
	if !deadline.IsZero() {
		if wait = time.Until(deadline); wait <= 0 {
			return nil, 0, os.ErrDeadlineExceeded
		}
	}
	c.in.mutex.Lock()
	defer c.in.mutex.Unlock()
	if cut || len(c.in.queue) == 0 {
		return nil, wait, nil
	}
	first := c.in.queue[0]
	if due := time.Until(first.at); due > 0 {
		return nil, min(wait, due), nil
	}
	if first.content == nil {
		return nil, 0, io.EOF
	}
	c.in.queue = c.in.queue[1:]
	return first.content, 0, nil
}

// Read is net.Conn's.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		content, err := c.receive(context.Background(), 0)
		if err != nil {
			return 0, err
		}
		bytes, ok := content.([]byte)
		if !ok {
			return 0, errors.New("this is no message of the agents")
		}
		c.rest = bytes
	}
	read := copy(p, c.rest)
	c.rest = c.rest[read:]
	return read, nil
}

// Write is net.Conn's.
func (c *conn) Write(p []byte) (int, error) {
	if err := c.send(append([]byte(nil), p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close is net.Conn's. The other end hears of it.
func (c *conn) Close() error {
	_ = c.send(nil)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.closed = true
	c.in.wake()
	return nil
}

// SetReadDeadline, SetDeadline and the rest are net.Conn's.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.deadline = t
	c.in.wake()
	return nil
}
func (c *conn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
func (c *conn) LocalAddr() net.Addr              { return place(c.way.from) }
func (c *conn) RemoteAddr() net.Addr             { return place(c.way.to) }

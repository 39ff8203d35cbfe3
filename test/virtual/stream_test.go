package virtual

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// The patience of a stream and of a copy with a network that takes nothing (followPatience and copyPatience of
// internal/postgres), and after how long a standby tries again (wal_retrieve_retry_interval).
const (
	followPatience = 3 * time.Second
	copyPatience   = 10 * time.Second
	retryInterval  = 250 * time.Millisecond
)

// hello is what a standby begins with: where its WAL ends. The WAL itself is there for the checks alone.
type hello struct {
	name, system string
	history      []begin
	records      int
	wal          []record
}

// greeting is the answer.
type greeting struct {
	refusal error
	history []begin
	known   map[wal.Timeline][]begin
}

// written is some more of the WAL; flushed is how much is on disk at the standby.
type written struct {
	from    int
	records []record
}
type flushed int

// downstream is a primary's end of a stream.
type downstream struct {
	name     string
	conn     *conn
	sent     int
	flushed  int
	caughtUp bool
}

// receiveAlways streams from the upstream for as long as the server is a standby.
func (p *process) receiveAlways() {
	for {
		err := p.await(p.life, func() bool {
			all := p.replayed == len(p.s.disk.wal) // a standby asks for more when it has replayed what it has
			return p.conf.Upstream != nil && all && !p.promoting && !p.stopping || !p.recovery
		})
		if err != nil || p.is(func() bool { return !p.recovery }) {
			return
		}
		p.receive()
		if pause(p.life, retryInterval) != nil {
			return
		}
	}
}

// receive is one receiver, from its beginning to its end.
func (p *process) receive() {
	ctx, end := context.WithCancel(p.life)
	defer end()
	p.w.mutex.Lock()
	u := p.conf.Upstream
	if u == nil || p.stopping || p.promoting || u.Term < p.s.lowest { // its key is gone
		p.w.mutex.Unlock()
		return
	}
	p.receives, p.endStream = true, end
	p.w.mutex.Unlock()
	err := p.stream(ctx, *u)
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	p.receives, p.streams, p.endStream = false, false, nil
	p.bump()
	p.w.log(p.s.name, "its stream from %s ends: %v", u.Host, err)
}

// stream receives WAL until something ends that.
func (p *process) stream(ctx context.Context, u postgres.Upstream) error {
	c, greeted, err := p.connectTo(ctx, u)
	if err != nil {
		return err
	}
	defer c.Close()
	p.w.mutex.Lock()
	p.s.disk.history, p.streams = greeted.history, true
	for timeline, history := range greeted.known {
		p.s.disk.known[timeline] = history
	}
	p.bump()
	p.w.mutex.Unlock()
	for {
		message, err := c.receive(ctx, followPatience)
		if err != nil {
			return err
		}
		more, ok := message.(written)
		if !ok {
			return fmt.Errorf("%T is no WAL", message)
		}
		if err := p.s.awaitVolume(); err != nil { // who waits for a disk is not told to end
			return err
		}
		end, err := p.take(more)
		if err != nil {
			return err
		}
		if err := c.send(flushed(end)); err != nil {
			return err
		}
	}
}

// connectTo connects a standby with its upstream.
func (p *process) connectTo(ctx context.Context, u postgres.Upstream) (*conn, greeting, error) {
	c, err := p.w.net.dial(ctx, p.s.name, net.JoinHostPort(u.Host, strconv.Itoa(u.Port)))
	if err != nil {
		return nil, greeting{}, err
	}
	p.w.mutex.Lock()
	d := p.s.disk
	h := hello{u.Name, d.system, d.history, len(d.wal), d.wal[:len(d.wal):len(d.wal)]}
	lowest := p.s.lowest
	p.w.mutex.Unlock()
	if u.Term < lowest {
		_ = c.Close()
		return nil, greeting{}, errors.New("certificate present, but not private key file")
	}
	_ = c.send(h)
	message, err := c.receive(ctx, followPatience)
	greeted, ok := message.(greeting)
	if err == nil && !ok {
		err = fmt.Errorf("%T is no greeting", message)
	}
	if err = errors.Join(err, greeted.refusal); err != nil {
		_ = c.Close()
		return nil, greeting{}, err
	}
	return c, greeted, nil
}

// take puts WAL on disk, and has it replayed in a while.
func (p *process) take(more written) (end int, err error) {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	d := p.s.disk
	if p.isEnded() || p.s.isDead() {
		return 0, errGone
	}
	if more.from != len(d.wal) {
		return 0, fmt.Errorf("WAL from %d does not continue %d", more.from, len(d.wal))
	}
	d.wal = append(d.wal, more.records...)
	end = len(d.wal)
	if len(more.records) > 0 {
		time.AfterFunc(p.w.between("replay"+p.s.name, 0, 30*time.Millisecond), func() {
			p.w.mutex.Lock()
			defer p.w.mutex.Unlock()
			if !p.held || p.promoting {
				p.replayed = max(p.replayed, end)
			}
			p.bump()
		})
	}
	return end, nil
}

// replayOn has the server replay all that it has, though its replay was held up. It is called with the world's mutex.
func (p *process) replayOn() {
	if p.held {
		p.held, p.replayed = false, len(p.s.disk.wal)
		p.bump()
	}
}

// LetUsIn is postgres.Server's: nobody is kept out here.
func (s *server) LetUsIn(context.Context) error { return nil }

// KillReceiver is postgres.Process's: none hangs here.
func (p *process) KillReceiver() error { return nil }

// StopReceiving is postgres.Process's.
func (p *process) StopReceiving(ctx context.Context) error {
	p.w.mutex.Lock()
	if p.endStream != nil {
		p.endStream()
	}
	p.w.mutex.Unlock()
	if err := p.await(ctx, func() bool { return !p.receives }); err != nil {
		return fmt.Errorf("stop receiving WAL: %w", err)
	}
	return nil
}

// serve takes standbys and those that copy.
func (p *process) serve(l *listener) {
	for {
		c, err := l.accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if message, err := c.receive(p.life, followPatience); err == nil {
				p.answer(c, message)
			}
		}()
	}
}

func (p *process) answer(c *conn, message any) {
	switch m := message.(type) {
	case hello:
		p.feed(c, m)
	case copyAsked:
		p.sendCopy(c, m)
	}
}

// feed sends a standby all WAL that it lacks, as it is written.
func (p *process) feed(c *conn, h hello) {
	d, err := p.welcome(c, h)
	if d == nil || c.send(greeting{refusal: err, history: p.s.history(), known: p.s.histories()}) != nil || err != nil {
		return
	}
	defer p.forget(d)
	ctx, end := context.WithCancel(p.life)
	defer end()
	go func() {
		defer end()
		p.hearAcknowledgements(ctx, d)
	}()
	for ctx.Err() == nil {
		var more written
		err := p.await(ctx, func() bool {
			more = written{d.sent, slices.Clone(p.s.disk.wal[d.sent:])}
			return len(more.records) > 0 || !d.caughtUp
		})
		if err != nil || c.send(more) != nil {
			return
		}
		p.w.mutex.Lock()
		d.sent += len(more.records)
		d.caughtUp = true
		p.w.mutex.Unlock()
	}
}

// welcome looks whether a standby can be fed.
func (p *process) welcome(c *conn, h hello) (*downstream, error) {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	d := &downstream{name: h.name, conn: c, sent: h.records, flushed: h.records}
	if p.stopping || time.Now().Before(p.s.deaf) || h.system != p.s.disk.system {
		return d, errors.New("this server takes no replication")
	}
	if err := p.s.disk.continues(h.history, h.records); err != nil {
		return d, err
	}
	if !same(h.wal, p.s.disk.wal) {
		p.w.fail("a follower's WAL is the beginning of its leader's", "%s of %d, at %s", h.name, h.records, p.s.name)
	}
	p.downstream[d] = true
	return d, nil
}

func (p *process) hearAcknowledgements(ctx context.Context, d *downstream) {
	for {
		message, err := d.conn.receive(ctx, followPatience)
		end, ok := message.(flushed)
		if err != nil || !ok {
			return
		}
		p.w.mutex.Lock()
		d.flushed = max(d.flushed, int(end))
		p.bump()
		p.w.mutex.Unlock()
	}
}

func (p *process) forget(d *downstream) {
	p.w.mutex.Lock()
	defer p.w.mutex.Unlock()
	delete(p.downstream, d)
	p.bump()
}

func (s *server) history() []begin {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	return slices.Clone(s.disk.history)
}

// histories are those that lead to the present timeline.
func (s *server) histories() map[wal.Timeline][]begin {
	s.w.mutex.Lock()
	defer s.w.mutex.Unlock()
	all := map[wal.Timeline][]begin{}
	for i, b := range s.disk.history {
		if i > 0 {
			all[b.timeline] = slices.Clone(s.disk.history[:i+1])
		}
	}
	return all
}

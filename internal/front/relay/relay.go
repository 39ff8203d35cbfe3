// Package relay passes clients on to whichever instance leads (docs/connections.md, "The relay"). It reads nothing of
// what is passed on, and must not know PostgreSQL.
package relay

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"toban.dev/internal/front/route"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

const (
	// look is how often it is looked whether another instance leads, rest how often whether clients are to be passed
	// on.
	look = 50 * time.Millisecond
	rest = time.Second
	// dialTimeout is for a connection to the leader. A leader that is not reached may be another a moment later.
	dialTimeout = time.Second
	// listenAgain is after how long it is tried again to listen.
	listenAgain = time.Second
	// silent is for how long nothing may be heard of an instance to which clients are passed on. TCP alone gives up
	// what nobody acknowledges after a quarter of an hour. A shorter limit of TCP (TCP_USER_TIMEOUT) would also end who
	// only takes nothing for a while: a backend that waits for a lock in a COPY, or a client that shows page after
	// page.
	silent = 10 * time.Second
	// most is how many clients there are at once; a server takes fewer.
	most = 5000
)

// Relay passes clients on. Its public fields are set before it runs.
type Relay struct {
	// Listen is the address to listen on, "" for all, ListenAt listens there.
	Listen   string
	ListenAt func(ctx context.Context, address string) (net.Listener, error)
	// Wanted says that clients are to be passed on.
	Wanted func() bool
	// Told is what the instances have told last.
	Told func() []protocol.InstanceTells
	// Silence is for how long nothing has been heard of an instance.
	Silence func(instance string) time.Duration
	// Dial connects to a leader.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Changed is told whether clients are taken.
	Changed func(listens bool)
	Log     *slog.Logger

	mutex   sync.Mutex
	route   route.Route
	passing map[*passage]bool
	// leaves says that it is looked whether those who are passed on are to leave a former leader.
	leaves bool
}

// Run passes clients on while that is wanted, until ctx ends. Clients that are passed on stay when it is not wanted
// any more.
func (r *Relay) Run(ctx context.Context) error {
	told := ""
	for pause.Every(ctx, rest) {
		if !r.Wanted() {
			continue
		}
		if err := r.accept(ctx); err != nil && ctx.Err() == nil {
			if err.Error() != told {
				told = err.Error()
				r.Log.Warn("clients are not passed on", "error", told)
			}
			pause.For(ctx, listenAgain)
		}
	}
	return nil
}

// accept takes clients for as long as that is wanted.
func (r *Relay) accept(ctx context.Context) error {
	wanted, unwanted := context.WithCancel(ctx)
	defer unwanted()
	listener, err := r.ListenAt(wanted, net.JoinHostPort(r.Listen, strconv.Itoa(naming.PortRelay)))
	if err != nil {
		return err
	}
	r.Changed(true)
	defer r.Changed(false)
	go func() {
		for r.Wanted() {
			if !pause.Every(wanted, rest) {
				break
			}
		}
		_ = listener.Close()
	}()
	for {
		client, err := listener.Accept()
		if err != nil {
			if !r.Wanted() {
				return nil
			}
			return err
		}
		go r.pass(ctx, client)
	}
}

// pass passes a client on to the leader, also when that becomes another before the server has said anything. While
// nobody leads the client waits, for protocol.HoldLimit at most.
func (r *Relay) pass(ctx context.Context, client net.Conn) {
	waits, cancel := context.WithTimeout(ctx, protocol.HoldLimit)
	p := &passage{client: client, ended: cancel}
	defer p.end()
	if !r.add(ctx, p) {
		return
	}
	defer r.remove(p)
	defer context.AfterFunc(ctx, p.end)()
	go p.listen()
	for waits.Err() == nil {
		to, server := r.dial(waits)
		if server == nil || p.through(server, to) {
			return
		}
	}
}

// dial connects to the leader, as soon as there is one that can be reached.
func (r *Relay) dial(ctx context.Context) (route.Route, net.Conn) {
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			pause.For(ctx, look)
		}
		to, open := r.leader()
		if !open {
			continue
		}
		once, cancel := context.WithTimeout(ctx, dialTimeout)
		server, err := r.Dial(once, "tcp", net.JoinHostPort(to.Address, strconv.Itoa(naming.PortPostgreSQL)))
		cancel()
		if err == nil {
			return to, server
		}
	}
	return route.Route{}, nil
}

// leader is where clients go now, and whether they do.
func (r *Relay) leader() (to route.Route, open bool) {
	told := r.Told()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	d := route.Decide(r.route, told)
	r.route = d.Route
	return d.Route, d.Open()
}

// leaveFormer ends what goes to an instance of a former term, as soon as another leads, and what goes to one of which
// nothing is heard any more, until nobody is passed on.
func (r *Relay) leaveFormer(ctx context.Context) {
	for pause.For(ctx, look) {
		now, open := r.leader()
		r.mutex.Lock()
		for p := range r.passing {
			if open {
				p.leave(now)
			}
			p.giveUp(r.Silence)
		}
		if len(r.passing) == 0 {
			r.leaves = false
			r.mutex.Unlock()
			return
		}
		r.mutex.Unlock()
	}
}

// add notes one that is passed on, and has it leave a former leader.
func (r *Relay) add(ctx context.Context, p *passage) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.passing) >= most {
		return false
	}
	if r.passing == nil {
		r.passing = map[*passage]bool{}
	}
	r.passing[p] = true
	if !r.leaves {
		r.leaves = true
		go r.leaveFormer(ctx)
	}
	return true
}

func (r *Relay) remove(p *passage) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.passing, p)
}

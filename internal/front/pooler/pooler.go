// Package pooler is the process with id 1 in a pooler's Pod. It runs PgBouncer, has it connect to the instance that
// leads, and has clients wait while none does or the leader is about to stop (docs/connections.md). It must not know
// Kubernetes.
package pooler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"toban.dev/internal/pause"

	"toban.dev/internal/front/route"
)

// lookInterval is how often the files are looked at that the kubelet may have changed, and what failed is tried again.
const lookInterval = time.Second

// Options are what a pooler is told.
type Options struct {
	// Name is the pooler's.
	Name string
	// Settings is the file with protocol.PoolSettings, Certificate the folder with tls.crt and tls.key.
	Settings, Certificate string
	// Run is a folder in memory, Program PgBouncer's.
	Run, Program string
	// Listen is the address that clients and the kubelet reach, "*" for all, and Port the one of clients.
	Listen string
	Port   uint16
	// Asker asks the instances, by the authorities (PEM) that are trusted.
	Asker func(authorities func() string) Asker
	Log   *slog.Logger
}

// Pooler runs one PgBouncer. Only Run uses what is not guarded.
type Pooler struct {
	options   Options
	console   console
	files     *files
	instances *instances
	names     *names
	news      chan struct{} // something has changed
	turn      atomic.Uint32 // of the servers, whose turn it is
	state     state

	target target
	hold   *hold
}

// New reads the settings.
func New(options Options) (*Pooler, error) {
	p := &Pooler{
		options: options, console: console{folder: options.Run, port: options.Port}, news: make(chan struct{}, 1),
	}
	var err error
	if p.names, err = listenForNames(p.server, options.Log); err != nil {
		return nil, err
	}
	p.files = &files{
		settingsFile: options.Settings, paths: paths{run: options.Run, certificate: options.Certificate},
		listen: listening{options.Listen, options.Port}, names: p.names.address(),
	}
	if _, err := p.files.write(); err != nil {
		return nil, err
	}
	p.names.name = p.files.settings.Server
	p.instances = newInstances(options.Name, options.Asker(p.files.authorities), p.wake)
	return p, nil
}

// wake has the loop look again. It does not wait.
func (p *Pooler) wake() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// Run runs PgBouncer until ctx ends; then transactions that are under way end first. An error says that PgBouncer has
// ended by itself, or can't be commanded.
func (p *Pooler) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	go p.names.run(life)
	bouncer, err := startBouncer(p.options.Program, p.files.paths.configuration())
	if err != nil {
		return err
	}
	defer bouncer.kill()
	if err := p.console.awaitUp(ctx, bouncer.ended); err != nil {
		return cmp.Or(bouncer.failure(), err)
	}
	p.serve(life)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		if err := p.step(life); err != nil {
			p.options.Log.Warn("could not have PgBouncer do what is decided: it is tried again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return p.leave(bouncer)
		case <-bouncer.ended:
			return bouncer.failure()
		case <-p.news:
		case <-look.C:
		}
	}
}

// step has PgBouncer do what is decided. Files that can't be read keep it from nothing.
func (p *Pooler) step(ctx context.Context) error {
	return errors.Join(p.refresh(ctx), p.follow(ctx))
}

// refresh has PgBouncer read its files where they have changed.
func (p *Pooler) refresh(ctx context.Context) error {
	changed, err := p.files.write()
	if err != nil || !changed {
		return err
	}
	if _, err := p.console.quick(ctx, "RELOAD"); err != nil {
		p.files.forget() // they are read again
		return err
	}
	return nil
}

// follow goes where the instances say.
func (p *Pooler) follow(ctx context.Context) error {
	p.instances.watch(ctx, slices.Concat(p.files.settings.Hosts, p.files.settings.Readers))
	next := p.target.next(p.files.settings, p.instances)
	if !next.same(p.target) {
		if err := p.move(ctx, next); err != nil {
			return err
		}
	}
	p.target = next
	p.state.set(State{
		Decision: next.Decision, Held: p.hold != nil && p.hold.complete(), Servers: next.servers,
		Asleep: p.files.settings.Asleep,
	})
	if next.Open() {
		return p.letGo(ctx, next.Decision)
	}
	p.holdClients(ctx, next.Decision)
	return nil
}

// move leaves the instances of former terms: no session stays there. Those who only read leave what is no standby any
// more.
func (p *Pooler) move(ctx context.Context, to target) error {
	stay, spared, err := to.addresses()
	if err != nil {
		return err
	}
	ended, err := p.console.leave(ctx, stay, spared, to.Reason == route.StandbysServe)
	if err != nil {
		return err
	}
	if to.Reason == route.StandbysServe {
		p.options.Log.Info("goes to other standbys", "instances", to.names(), "from", p.target.names(), "ended", ended)
	} else {
		p.options.Log.Info("goes to another leader",
			"instance", to.Route.Instance, "term", to.Route.Term, "from", p.target.names(), "ended", ended)
	}
	return nil
}

// holdClients begins to hold the clients, and tells the leader when they are held.
func (p *Pooler) holdClients(ctx context.Context, d route.Decision) {
	switch {
	case p.hold == nil:
		p.options.Log.Info("holds its clients", "reason", string(d.Reason), "leader", d.Route.Instance)
		p.hold = p.console.pause(ctx, d.Reason == route.HandOver, p.wake)
	case p.hold.failed():
		p.options.Log.Warn("could not hold the clients: it is tried again", "error", p.hold.err.Error())
		p.hold = nil
	case p.hold.complete():
		if !p.hold.said {
			p.options.Log.Info("no transaction is under way, and none begins", "reason", string(d.Reason))
			p.hold.said = true
		}
		p.instances.hold(d.HandOver)
	}
}

// letGo has clients go on that were held.
func (p *Pooler) letGo(ctx context.Context, d route.Decision) error {
	if p.hold == nil {
		p.instances.hold(d.HandOver) // no client of this pooler is at the leader
		return nil
	}
	if err := p.hold.end(ctx); err != nil {
		return err
	}
	p.options.Log.Info("lets its clients go on")
	p.hold = nil
	p.instances.hold(d.HandOver)
	return nil
}

// confirmAgain is after how long it is looked again for an instance that confirms that clients may go there.
const confirmAgain = 50 * time.Millisecond

// server waits until an instance confirms that clients may go there, and returns its address: one after the other,
// where there are several.
func (p *Pooler) server(ctx context.Context) (netip.Addr, error) {
	for {
		now := p.State()
		for range now.Servers {
			to := now.Servers[int(p.turn.Add(1))%len(now.Servers)]
			if now.Open() && p.instances.confirms(ctx, to, now.Reason) {
				return netip.ParseAddr(to.Address) //nolint:wrapcheck // it says what
			}
		}
		if !pause.For(ctx, confirmAgain) {
			return netip.Addr{}, ctx.Err()
		}
	}
}

// leavePatience is how long transactions may take when the pooler is told to stop: less than its Pod has to end.
const leavePatience = 20 * time.Second

// leave ends PgBouncer when no transaction is under way any more, or after leavePatience.
func (p *Pooler) leave(b *bouncer) error {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	p.options.Log.Info("told to stop: transactions that are under way end first")
	if _, err := p.console.quick(ctx, "SHUTDOWN WAIT_FOR_SERVERS"); err != nil {
		return err
	}
	select {
	case <-b.ended:
	case <-ctx.Done():
		p.options.Log.Warn("transactions take too long: they are ended", "patience", leavePatience.String())
	}
	return nil
}

package agent

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"sync/atomic"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// launcher starts the server, and puts together what looks after one that runs.
type launcher struct {
	name      string // the instance's
	server    PostgreSQL
	serverLog io.Writer
	good      lastKnownGood
	wanted    func() protocol.Config
	hardState func() ha.HardState
	// identity says what the server is to show and to trust.
	identity func() (certificate []byte, trusted string, identity protocol.Identity)
	members  *members
	leader   *leader
	demands  *demands
	status   *status.Board
	flags    *flags
	idle     *idle
	pressure *pressure.Gauge
	post     func(machine.Event)
	publish  func(protocol.Role)
	// current takes the server that runs, so that whoever is to end it finds it.
	current *atomic.Pointer[running]
	log     *slog.Logger
}

// start starts the server in a role.
func (l *launcher) start(ctx context.Context, c machine.Command) error {
	l.demands.require(c.Rule)
	primary := c.Kind == machine.StartPrimary
	if err := l.server.Directory().SetStandby(!primary); err != nil {
		return err
	}
	control, err := l.server.Control(ctx)
	if err != nil {
		return err
	}
	s := &standing{primary: primary, promoted: primary, upstream: c.Ballot, opened: !c.Closed}
	if !primary {
		s.least = control.Least
	}
	r := l.prepare(ctx, c.ID, s)
	if err := r.config.start(ctx); err != nil {
		r.end()
		l.current.CompareAndSwap(r, nil)
		return err
	}
	if _, err := r.control.connect(ctx); err != nil {
		l.log.Info("no session yet", "error", err.Error())
	}
	return nil
}

// prepare puts together what a server needs that does not run yet.
func (l *launcher) prepare(ctx context.Context, run uint64, s *standing) *running {
	r := &running{
		run: run, server: l.server, standing: s, poke: make(poke, 1), status: l.status, post: l.post, log: l.log,
	}
	r.life, r.end = context.WithCancel(context.WithoutCancel(ctx))
	reporter := &reporter{run: run, standing: s, status: l.status, full: &l.flags.full, post: l.post}
	r.control = &control{server: l.server, standing: s, unelected: reporter.unelected}
	r.config = l.configure(r)
	r.monitor = &monitor{
		server: l.server, standing: s, reporter: reporter, config: r.config, wanted: l.wanted, status: l.status,
		flags: l.flags, term: func() uint64 { return l.hardState().Won }, publish: l.publish, poke: r.poke,
		ending: &r.ending, checkpoint: func() { r.tending.Go(func() { r.checkpoint(r.life) }) }, log: l.log,
		idle: l.idle, looks: looks{pressure: l.pressure},
		presented: &presented{
			want: l.identity, presents: l.server.Presents, reload: func() { l.flags.renewed.Store(true) },
			status: l.status, log: l.log,
		},
		chores: &chores{
			config: l.wanted, slots: l.members.slots, archived: l.leader.archived, report: l.reportKeptWAL,
			linked: &l.flags.linked, log: l.log,
			linkMost: func() int64 {
				s := l.status.Get()
				return linkMost(s.Room, s.WALRoom)
			},
		},
		superseded: &superseded{
			hardState: l.hardState, allStream: l.leader.hasAll, log: l.log,
			forget: l.server.WAL().ForgetSuperseded,
		},
	}
	r.collations = &collations{
		primary: func() bool { return s.role() == ha.ServerPrimary && s.isOpen() }, connect: l.server.ConnectTo,
		freeSpace: l.server.Directory().FreeSpace, status: l.status, log: l.log,
	}
	return r
}

// reportKeptWAL puts into the status for whom WAL is kept, where that is something new.
func (l *launcher) reportKeptWAL(kept *protocol.KeptWAL) {
	if !reflect.DeepEqual(kept, l.status.Get().KeptWAL) {
		l.status.Change(func(s *protocol.Status) { s.KeptWAL = kept })
	}
}

// configure is the configuration of a server that does not run yet.
func (l *launcher) configure(r *running) *configuration {
	role := &role{
		standing: r.standing, rule: l.demands.rule, hardState: l.hardState, upstream: l.members.upstream,
		closed: func() bool { return l.wanted().Closed },
		link:   func() bool { return l.wanted().Link || l.flags.linked.Load() }, sparing: l.flags.sparing.Load,
	}
	return &configuration{
		name: l.name, server: l.server, connect: l.server.Connect, wanted: l.wanted, good: l.good, withRole: role.add,
		startServer: func(ctx context.Context) (Process, error) { return l.server.Start(ctx, l.serverLog) },
		look:        r.poke.observe, report: configReport{status: l.status, log: l.log}, log: l.log, life: r.life,
		started: func(process Process) {
			r.process, r.monitor.process = process, process
			l.current.Store(r)
		},
	}
}

package running

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/pressure"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Launcher starts the server, and puts together what looks after one that runs.
type Launcher struct {
	Name      string // the instance's
	Volume    string // its folder
	Server    PostgreSQL
	ServerLog io.Writer
	Good      LastKnownGood
	Wanted    func() protocol.Config
	HardState func() ha.HardState
	// Identity says what the server is to show and to trust.
	Identity func() (certificate []byte, trusted string, identity protocol.Identity)
	// Slots are those that a primary is to have, Upstream is how a leader is followed.
	Slots    func() []string
	Upstream func(leader ha.Ballot) (postgres.Upstream, error)
	// Archived is up to where the WAL is in the archive, AllStream says that all stream from the leader.
	Archived  func() string
	AllStream func() bool
	// Require has commits wait by a rule from the first of a server on, Rule is by which they do.
	Require  func(ha.Rule)
	Rule     func() ha.Rule
	Status   *status.Board
	Flags    *Flags
	Idle     *Idle
	Pressure *pressure.Gauge
	Post     func(machine.Event)
	Publish  func(protocol.Role)
	// Current takes the server that runs, so that whoever is to end it finds it.
	Current *atomic.Pointer[Server]
	Log     *slog.Logger
}

// Start starts the server in a role.
func (l *Launcher) Start(ctx context.Context, c machine.Command) error {
	l.Require(c.Rule)
	primary := c.Kind == machine.StartPrimary
	if err := l.Server.Directory().SetStandby(!primary); err != nil {
		return err
	}
	control, err := l.Server.Control(ctx)
	if err != nil {
		return err
	}
	s := &Standing{primary: primary, promoted: primary, upstream: c.Ballot, opened: !c.Closed}
	if !primary {
		s.least = control.Least
	}
	r := l.prepare(ctx, c.ID, s)
	if err := r.Config.start(ctx); err != nil {
		l.giveUp(r)
		return err
	}
	_, err = r.Control.Connect(ctx)
	if primary && postgres.CanBeLetIn(err) {
		if err := l.letUsIn(ctx, r, err); err != nil {
			l.giveUp(r)
			return err
		}
		_, err = r.Control.Connect(ctx)
	}
	switch {
	case primary && postgres.RefusesUs(err) && !postgres.CanBeLetIn(err):
		l.Log.Warn("the database postgres is gone, in which the agent works: make it again with kubectl toban psql "+
			"NAME --instance "+l.Name+" --database template1 -- -c 'CREATE DATABASE postgres'", "error", err.Error())
	case err != nil:
		l.Log.Info("no session yet", "error", err.Error())
	}
	return nil
}

// giveUp leaves a server that could not be started. One that waits within the kernel for a disk, though it was killed,
// stays the current one: a fence is not over before that has ended.
func (l *Launcher) giveUp(r *Server) {
	r.Ending.Store(true)
	r.end()
	if r.Process == nil || Ended(r.Process) {
		l.Current.CompareAndSwap(r, nil)
	}
}

// letInDeadline is how long a primary that has just been started may take to stop in order.
const letInDeadline = 15 * time.Second

// letUsIn stops a primary that has just been started and lets its agent in no more, undoes that, and starts it again.
// Usually a session that is there does so; here none is left. A standby has it from its primary.
func (l *Launcher) letUsIn(ctx context.Context, r *Server, refusal error) error {
	l.Log.Warn("the server refuses sessions of the agent: it is stopped, and told to let them in again",
		"error", refusal.Error())
	soon, cancel := context.WithTimeout(ctx, letInDeadline)
	defer cancel()
	r.Process.Stop(soon, postgres.StopFast) // who reads its WAL may keep it; at the deadline it ends at once
	if !Ended(r.Process) {
		return fmt.Errorf("%w: it was to be told to let sessions of the agent in again", ErrNoEnd)
	}
	if err := l.Server.LetUsIn(ctx); err != nil {
		l.Log.Warn("it could not be told that", "error", err.Error())
	}
	return r.Config.start(ctx)
}

// prepare puts together what a server needs that does not run yet.
func (l *Launcher) prepare(ctx context.Context, run uint64, s *Standing) *Server {
	r := &Server{
		Run: run, PostgreSQL: l.Server, Standing: s, poke: make(poke, 1), status: l.Status, post: l.Post, log: l.Log,
	}
	r.life, r.end = context.WithCancel(context.WithoutCancel(ctx))
	reporter := &reporter{run: run, standing: s, status: l.Status, full: &l.Flags.full, post: l.Post}
	r.Control = &control{server: l.Server, standing: s, unelected: reporter.unelected}
	r.Config = l.configure(r)
	r.monitor = &monitor{
		server: l.Server, standing: s, reporter: reporter, config: r.Config, wanted: l.Wanted, status: l.Status,
		flags: l.Flags, term: func() uint64 { return l.HardState().Won }, publish: l.Publish, poke: r.poke,
		ending: &r.Ending, checkpoint: func() { r.tending.Go(func() { r.checkpoint(r.life) }) }, log: l.Log,
		idle: l.Idle, looks: looks{pressure: l.Pressure, slow: &l.Flags.Slow},
		presented: &presented{
			want: l.Identity, presents: l.Server.Presents, reload: func() { l.Flags.Renewed.Store(true) },
			status: l.Status, log: l.Log,
		},
		chores: &chores{
			config: l.Wanted, slots: l.Slots, archived: l.Archived, report: l.reportKeptWAL,
			linked: &l.Flags.linked, log: l.Log,
			linkMost: func() int64 {
				s := l.Status.Get()
				return linkMost(s.Room, s.WALRoom)
			},
		},
		superseded: &superseded{
			hardState: l.HardState, allStream: l.AllStream, log: l.Log,
			forget: l.Server.WAL().ForgetSuperseded,
		},
	}
	r.collations = &collations{
		primary: func() bool { return s.Role() == ha.ServerPrimary && s.IsOpen() }, connect: l.Server.ConnectTo,
		freeSpace: l.Server.Directory().FreeSpace, status: l.Status, log: l.Log,
	}
	return r
}

// reportKeptWAL puts into the status for whom WAL is kept, where that is something new.
func (l *Launcher) reportKeptWAL(kept *protocol.KeptWAL) {
	if !reflect.DeepEqual(kept, l.Status.Get().KeptWAL) {
		l.Status.Change(func(s *protocol.Status) { s.KeptWAL = kept })
	}
}

// configure is the configuration of a server that does not run yet.
func (l *Launcher) configure(r *Server) *configuration {
	role := &role{
		standing: r.Standing, rule: l.Rule, hardState: l.HardState, upstream: l.Upstream,
		closed: func() bool { return l.Wanted().Closed },
		link:   func() bool { return l.Wanted().Link || l.Flags.linked.Load() }, sparing: l.Flags.Sparing.Load,
	}
	return &configuration{
		name: l.Name, server: l.Server, connect: l.Server.Connect, login: l.Server.ProveLogin,
		makeTablespace: spaces{below: filepath.Join(l.Volume, "tablespaces"), log: l.Log}.makeMissing,
		wanted:         l.Wanted, good: l.Good, withRole: role.add,
		startServer: func(ctx context.Context) (Process, error) { return l.Server.Start(ctx, l.ServerLog) },
		look:        r.poke.observe, report: configReport{status: l.Status, log: l.Log}, log: l.Log, life: r.life,
		started: func(process Process) {
			r.Process, r.monitor.process = process, process
			l.Current.Store(r)
		},
	}
}

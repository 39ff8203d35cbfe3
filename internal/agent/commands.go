package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// How long a server may take to stop: in order, and when it must be gone; how long receiving may take to end, and the end of
// the WAL to become known after it; and a promotion, before which all WAL has been replayed.
const (
	stopDeadline    = 90 * time.Second
	fenceDeadline   = 5 * time.Second
	cutDeadline     = time.Second
	endDeadline     = 800 * time.Millisecond
	promoteDeadline = 20 * time.Second
	stopFast        = postgres.StopFast
)

// commands carries out the machine's commands, one after the other. A fence ends the one that is being carried out.
type commands struct {
	life  context.Context //nolint:containedctx // it is the agent's
	do    func(ctx context.Context, c machine.Command) machine.Done
	ended func(machine.Command, machine.Done)

	mutex  sync.Mutex
	cancel context.CancelFunc
	over   chan struct{}
}

// begin begins a command.
func (x *commands) begin(c machine.Command) {
	ctx, cancel := context.WithCancel(x.life)
	over := make(chan struct{})
	x.mutex.Lock()
	x.cancel, x.over = cancel, over
	x.mutex.Unlock()
	go func() {
		defer close(over)
		defer cancel()
		d := x.do(ctx, c)
		d.ID = c.ID
		x.ended(c, d)
	}()
}

// end has the command end that is being carried out; the channel is closed when it has, nil where there is none.
func (x *commands) end() <-chan struct{} {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.cancel != nil {
		x.cancel()
	}
	return x.over
}

// fence ends the server at once, in whatever state it is: first the server, then what is being done with it. Nobody is
// waited for before that.
func (a *Agent) fence(e machine.Fence) {
	if r := a.current.Load(); r != nil {
		r.ending.Store(true) // whoever looks after it says nothing of it any more
	}
	a.report(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming, s.LSN = protocol.RoleNone, false, false, "" })
	err := a.kill()
	if over := a.commands.end(); over != nil {
		<-over
	}
	err = errors.Join(a.kill(), err) // it may have been starting one
	if err == nil {
		a.post(machine.Killed{ID: e.ID})
		a.Log.Info("the server answers nobody any more")
		err = a.awaitGone()
	}
	if r := a.current.Load(); r != nil && err == nil {
		r.letGo()
		a.current.Store(nil)
		a.Log.Info("the server has been stopped at once", "role", string(r.role()))
	}
	a.seeData()
	a.post(machine.Done{ID: e.ID, Err: text(err)})
}

// kill ends the server that runs: when it returns, nobody is answered any more. What hangs on a disk may be left of it.
func (a *Agent) kill() error {
	r := a.current.Load()
	if r == nil {
		return nil
	}
	r.ending.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), fenceDeadline)
	defer cancel()
	return r.process.Kill(ctx)
}

// awaitGone waits until nothing of the server is left.
func (a *Agent) awaitGone() error {
	r := a.current.Load()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.life), fenceDeadline)
	defer cancel()
	return r.process.Gone(ctx)
}

// ended goes on after a command. Who looks after a server begins when the machine knows of it.
func (a *Agent) ended(c machine.Command, d machine.Done) {
	if d.Err != "" {
		a.Log.Warn("could not "+string(c.Kind), "error", d.Err)
	}
	a.post(d)
	if r := a.current.Load(); r != nil && r.run == c.ID && d.Err == "" {
		r.attend()
	}
}

// do carries a command out.
func (a *Agent) do(ctx context.Context, c machine.Command) (d machine.Done) {
	var err error
	switch c.Kind {
	case machine.StartStandby, machine.StartPrimary:
		err = a.start(ctx, c)
	case machine.Follow:
		err = a.follow(c)
	case machine.Cut:
		d.End, err = a.cut(ctx, c.Term)
	case machine.Promote:
		d.Timeline, d.Begins, err = a.promote(ctx, c.Rule)
	case machine.Open:
		err = a.letClientsIn()
	case machine.Checkpoint:
		err = a.checkpoint(ctx)
	case machine.Stop:
		d.End, err = a.stop(ctx)
	default:
		d, err = a.doWithData(ctx, c)
	}
	d.Err = text(err)
	return d
}

// doWithData carries a command out that changes the data, and says what lies there then.
func (a *Agent) doWithData(ctx context.Context, c machine.Command) (d machine.Done, err error) {
	defer a.seeData()
	switch c.Kind {
	case machine.Initialise:
		err = a.server.Initialise(ctx, a.ServerLog)
	case machine.Clone:
		err = a.clone(ctx, c)
	case machine.Rewind:
		err = a.rewind(ctx, c)
	case machine.MarkForked:
		err = a.server.MarkForked()
	default:
		err = fmt.Errorf("nobody knows how to %q", c.Kind)
	}
	d.NoRoom, d.SameTimeline = errors.Is(err, postgres.ErrNoRoom), errors.Is(err, postgres.ErrSameTimeline)
	if d.NoRoom {
		a.data.lackRoom()
	}
	if c.Kind == machine.Clone || c.Kind == machine.Rewind {
		err = errors.Join(err, a.memory.reloadLineage())
		d.Lineage = a.memory.Get().Lineage
	}
	return d, err
}

// clone copies the data of the leader. Its lineage comes with it.
func (a *Agent) clone(ctx context.Context, c machine.Command) error {
	source, err := a.makeWay(ctx, c)
	if err != nil {
		return err
	}
	return a.server.Clone(ctx, source, func(whole bool) error { return a.mayDiscard(ctx, c, whole) }, a.ServerLog)
}

// mayDiscard asks the machine whether the data here may be given up for a copy, or why not.
func (a *Agent) mayDiscard(ctx context.Context, c machine.Command, whole bool) error {
	answer, err := a.elections.askAs(ctx, c.ID, machine.DiscardAsked{ID: c.ID, Whole: whole})
	if err != nil {
		return err
	}
	if reply, ok := answer.(machine.ReplyDiscard); ok && reply.Needed != "" {
		return errors.New(reply.Needed)
	}
	if !whole {
		a.report(func(s *protocol.Status) { s.Data = protocol.DataEmpty })
	}
	return nil
}

// rewind takes back what the leader never had. The leader's lineage comes with it.
func (a *Agent) rewind(ctx context.Context, c machine.Command) error {
	source, err := a.makeWay(ctx, c)
	if err != nil {
		return err
	}
	if err := a.mayDiscard(ctx, c, true); err != nil {
		return err
	}
	return a.server.Rewind(ctx, source, a.ServerLog)
}

// makeWay stops the server and forgets what was known of its data, which is about to be replaced from the source.
func (a *Agent) makeWay(ctx context.Context, c machine.Command) (postgres.Upstream, error) {
	m, err := a.member(c.Ballot.Leader)
	if err != nil {
		return postgres.Upstream{}, err
	}
	if _, err := a.stop(ctx); err != nil {
		return postgres.Upstream{}, err
	}
	a.report(func(s *protocol.Status) { s.SystemIdentifier, s.LSN, s.Streaming = "", "", false })
	return postgres.Upstream{
		Host: m.Host, Address: a.peers.address(m), Port: naming.PortPostgreSQL,
		Name: string(a.memory.Get().Voter), Slot: naming.Slot(a.Name), Term: c.Ballot.Term,
	}, nil
}

// follow has the standby follow another leader.
func (a *Agent) follow(c machine.Command) error {
	r := a.current.Load()
	if r == nil {
		return errNoServer
	}
	a.Log.Info("following", "leader", c.Ballot.Leader, "term", c.Ballot.Term)
	return r.turnTo(c.Ballot)
}

// errNoServer says that no server runs.
var errNoServer = errors.New("no server runs here")

// cut ends what the standby receives from leaders of earlier terms, keeps it so, and waits for the end of its WAL.
func (a *Agent) cut(ctx context.Context, term uint64) (ha.LSN, error) {
	r := a.current.Load()
	if r == nil {
		return 0, errNoServer
	}
	if err := a.server.Revoke(term); err != nil {
		return 0, err
	}
	if err := r.turnTo(ha.Ballot{}); err != nil {
		return 0, err
	}
	if err := r.stopReceiving(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, endDeadline)
	defer cancel()
	end, err := r.awaitEnd(ctx)
	if err == nil {
		r.see(func(s *seen) { s.end, s.known = end, true })
	}
	return end, err
}

func (r *running) stopReceiving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cutDeadline)
	defer cancel()
	return r.process.StopReceiving(ctx)
}

// letClientsIn opens the primary.
func (a *Agent) letClientsIn() error {
	r := a.current.Load()
	if r == nil {
		return errNoServer
	}
	r.opened.Store(true)
	defer r.look()
	return r.rewrite()
}

// checkpoint writes one, so that the stop after it is short.
func (a *Agent) checkpoint(ctx context.Context) error {
	r := a.current.Load()
	if r == nil {
		return errNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointDeadline)
	defer cancel()
	session, err := r.session(ctx)
	if err != nil {
		return err
	}
	return session.Checkpoint(ctx)
}

// stop stops the server in order, so that its successors can have all its WAL, and tells where that ends.
func (a *Agent) stop(ctx context.Context) (ha.LSN, error) {
	r := a.current.Load()
	if r == nil {
		return 0, nil
	}
	r.ending.Store(true)
	ctx, cancel := context.WithTimeout(ctx, stopDeadline)
	defer cancel()
	a.report(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming = protocol.RoleNone, false, false })
	r.letGo()
	r.process.Stop(ctx, postgres.StopFast)
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("stop the server in order: %w", err)
	}
	a.current.CompareAndSwap(r, nil)
	a.Log.Info("the server has stopped", "role", string(r.role()))
	if !r.isPrimary() {
		return 0, nil
	}
	control, err := a.server.Control(ctx)
	if err != nil {
		return 0, err
	}
	end, err := ha.ParseLSN(control.Checkpoint)
	// The shutdown's record begins there: who has any of it has all before it.
	return end + 1, err
}

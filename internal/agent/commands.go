package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// How long a server may take to stop: in order, and when it must be gone; how long receiving may take to end, and the
// end of the WAL to become known after it; and a promotion, before which all WAL has been replayed.
const (
	stopDeadline    = 90 * time.Second
	fenceDeadline   = 5 * time.Second
	cutDeadline     = time.Second
	endDeadline     = 800 * time.Millisecond
	promoteDeadline = 20 * time.Second
	stopFast        = postgres.StopFast
)

// checkpointDeadline bounds the checkpoint before a stop: the stop writes
// another one, which is then short.
const checkpointDeadline = 30 * time.Second

// commanded is what commands do to a server's files, whether it runs or not: a postgres.Server.
type commanded interface {
	Revoke(term uint64) error
	Control(ctx context.Context) (postgres.Control, error)
}

// walFiles are what commands see and do in pg_wal: a postgres.WALDirectory.
type walFiles interface {
	Fork(timeline wal.Timeline) (wal.LSN, error)
	Branch(timeline, earlier wal.Timeline) (wal.LSN, error)
	ForkFrom(timeline wal.Timeline, from wal.LSN) (wal.LSN, error)
	HasTimelines(after wal.Timeline) (bool, error)
	ForgetTimelines(after wal.Timeline) error
}

// commands carries out, one by one, what the machine wants done with the server.
type commands struct {
	server    commanded
	wal       walFiles
	launcher  *running.Launcher
	copies    *copies
	data      *dataWatch
	demands   *demands
	queue     *queue
	hardState func() ha.HardState
	slots     func() []string                        // those that a primary is to have
	hold      func(context.Context) (release func()) // has the poolers hold their clients
	at        func(moment time.Time) time.Duration   // as the machine measures time
	slack     func() time.Duration                   // how late things come on this machine
	status    *status.Board
	publish   func() // has the Services lead here
	post      func(machine.Event)
	current   *atomic.Pointer[running.Server]
	log       *slog.Logger
	life      context.Context //nolint:containedctx // it is the agent's
	// last is the primary that was stopped in order, as long as nothing has been done with its data since.
	last stoppedPrimary
}

// stoppedPrimary is a primary that was stopped in order, where its WAL ends, and whose WAL it has: its own term is the
// last, whatever the instance has promised since.
type stoppedPrimary struct {
	server  *running.Server
	end     wal.LSN
	history []ha.TermStart
}

// stateShutDown is how PostgreSQL calls a primary in its control file that has stopped in order.
const stateShutDown = "shut down"

// fence ends the server at once, in whatever state it is: first the server, then what is being done with it. Nobody is
// waited for before that.
func (x *commands) fence(e machine.Fence) {
	if r := x.current.Load(); r != nil {
		r.Ending.Store(true) // whoever looks after it says nothing of it any more
	}
	x.status.Change(
		func(s *protocol.Status) { s.Role, s.Ready, s.Streaming, s.LSN = protocol.RoleNone, false, false, "" })
	err := x.kill()
	if over := x.queue.end(); over != nil {
		<-over
	}
	err = errors.Join(x.kill(), err) // it may have been starting one
	if err == nil {
		x.post(machine.Killed(e))
		x.log.Info("the server answers nobody any more")
		err = x.awaitGone()
	}
	if r := x.current.Load(); r != nil && err == nil {
		r.Close()
		x.current.Store(nil)
		x.log.Info("the server has been stopped at once", "role", string(r.Standing.Role()))
	}
	x.data.see()
	x.post(machine.Done{ID: e.ID, Err: text(err)})
}

// kill ends the server that runs: when it returns, nobody is answered any more. What hangs on a disk may be left of it.
func (x *commands) kill() error {
	r := x.current.Load()
	if r == nil {
		return nil
	}
	r.Ending.Store(true)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.life), fenceDeadline)
	defer cancel()
	return r.Process.Kill(ctx, r.Standing.Hangs())
}

// awaitGone waits until nothing of the server is left.
func (x *commands) awaitGone() error {
	r := x.current.Load()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.life), fenceDeadline)
	defer cancel()
	return r.Process.Gone(ctx)
}

// ended goes on after a command. Who looks after a server begins when the machine knows of it.
func (x *commands) ended(c machine.Command, d machine.Done) {
	if d.Err != "" {
		x.log.Warn("could not "+string(c.Kind), "error", d.Err)
	}
	x.post(d)
	if r := x.current.Load(); r != nil && r.Run == c.ID && d.Err == "" {
		r.Attend()
	}
}

// do carries a command out.
func (x *commands) do(ctx context.Context, c machine.Command) (d machine.Done) {
	var err error
	switch c.Kind {
	case machine.StartStandby, machine.StartPrimary:
		err = x.launcher.Start(ctx, c)
	case machine.Follow:
		err = x.follow(c)
	case machine.Cut:
		var end postgres.End
		end, err = x.cut(ctx, c)
		d.End, d.Unreplayed, d.Ragged = end.LSN, end.Unreplayed, end.Ragged
	case machine.Promote:
		d.Timeline, d.Begins, err = x.promote(ctx, c.Rule)
	case machine.Open:
		err = x.letClientsIn(c.Until)
	case machine.Checkpoint:
		err = x.checkpoint(ctx)
	case machine.Stop:
		d.End, err = x.stop(ctx)
	default:
		d, err = x.copies.do(ctx, c)
	}
	if c.Kind != machine.Stop {
		x.last = stoppedPrimary{} // what is there now need not be what it has left
	}
	d.Err = text(err)
	return d
}

// follow has the standby follow another leader.
func (x *commands) follow(c machine.Command) error {
	r := x.current.Load()
	if r == nil {
		return running.ErrNoServer
	}
	x.log.Info("following", "leader", c.Ballot.Leader, "term", c.Ballot.Term)
	return r.Follow(c.Ballot)
}

// cut ends what the standby receives from leaders of earlier terms, keeps it so, and tells the end of its WAL. Only who
// stands waits until all of it is replayed.
func (x *commands) cut(ctx context.Context, c machine.Command) (postgres.End, error) {
	r := x.current.Load()
	if r == nil {
		return postgres.End{}, running.ErrNoServer
	}
	if err := x.server.Revoke(c.Term); err != nil {
		return postgres.End{}, err
	}
	if err := r.Follow(ha.Ballot{}); err != nil {
		return postgres.End{}, err
	}
	slack := x.slack()
	if err := r.StopReceiving(ctx, cutDeadline+slack); err != nil {
		return postgres.End{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, endDeadline+slack)
	defer cancel()
	found, err := r.Control.AwaitEnd(ctx, c.Replayed)
	if err == nil {
		r.Standing.See(func(s *running.Seen) { s.End, s.Known, s.Unreplayed = found.LSN, true, found.Unreplayed })
	}
	return found, err
}

// letClientsIn opens the primary, unless it is too late for that. What was frozen between the command and this moment
// may have been followed by another.
func (x *commands) letClientsIn(until time.Duration) error {
	r := x.current.Load()
	if r == nil {
		return running.ErrNoServer
	}
	if late := x.at(time.Now()) - until; late > 0 {
		return fmt.Errorf("not open to clients: it was held up, and what confirmed that it leads ended %s ago", late)
	}
	r.Standing.Open()
	defer r.Observe()
	return r.Config.Rewrite()
}

// checkpoint writes one, so that the stop after it is short.
func (x *commands) checkpoint(ctx context.Context) error {
	r := x.current.Load()
	if r == nil {
		return running.ErrNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, checkpointDeadline)
	defer cancel()
	session, err := r.Control.Connect(ctx)
	if err != nil {
		return err
	}
	return session.Checkpoint(ctx)
}

// stop stops the server in order, so that its successors can have all its WAL, and tells where that ends.
func (x *commands) stop(ctx context.Context) (wal.LSN, error) {
	r := x.current.Load()
	if r == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopDeadline)
	defer cancel()
	if r.Standing.IsPrimary() {
		defer x.hold(ctx)()
	}
	r.Ending.Store(true)
	x.status.Change(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming = protocol.RoleNone, false, false })
	r.Close()
	r.Process.Stop(ctx, postgres.StopFast)
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("stop the server in order: %w", err)
	}
	if !running.Ended(r.Process) {
		return 0, fmt.Errorf("stop the server in order: %w", running.ErrNoEnd)
	}
	x.current.CompareAndSwap(r, nil)
	x.log.Info("the server has stopped", "role", string(r.Standing.Role()))
	x.last = stoppedPrimary{}
	if !r.Standing.IsPrimary() {
		return 0, nil
	}
	control, err := x.server.Control(ctx)
	if err != nil {
		return 0, err
	}
	if control.State != stateShutDown { // it has ended by itself, and its last checkpoint is not the end
		return 0, fmt.Errorf("stop the server in order: its state is %q", control.State)
	}
	checkpoint, err := wal.ParseLSN(control.Checkpoint)
	if err != nil {
		return 0, err
	}
	// The shutdown's record begins there: who has any of it has all before it.
	x.last = stoppedPrimary{r, checkpoint.Add(1), x.hardState().TermHistory}
	return x.last.end, nil
}

// promote makes the standby the primary of the term that it has won, and tells the new timeline with where it begins.
// Where that does not come to its end, it goes on in PostgreSQL by itself: the machine ends the server then.
func (x *commands) promote(ctx context.Context, rule ha.Rule) (timeline wal.Timeline, begins wal.LSN, err error) {
	r := x.current.Load()
	if r == nil {
		return 0, 0, running.ErrNoServer
	}
	ctx, cancel := context.WithTimeout(ctx, promoteDeadline)
	defer cancel()
	session, err := r.Control.Connect(ctx)
	if err != nil {
		return 0, 0, err
	}
	promote := x.promoteTo
	if rule.Count > 0 && r.Config.Unruled.Load() {
		promote = x.promoteShut
	}
	if err := promote(ctx, r, session, rule); err != nil {
		return 0, 0, err
	}
	state, err := session.State(ctx)
	if err != nil {
		return 0, 0, err
	}
	begins, err = x.beginning(state.Timeline, x.hardState().TermHistory)
	if err != nil {
		return 0, 0, err
	}
	x.status.Change(func(s *protocol.Status) {
		s.Role, s.Ready, s.Reason, s.Message = protocol.RolePrimary, true, "Leader", "has just been elected"
	})
	r.Observe()
	r.SettleLater()
	return state.Timeline, begins, nil
}

// slotPatience is how long a primary that is promoted waits for the slots of its standbys.
const slotPatience = time.Second

// makeSlots makes the slots of the standbys, which come as soon as this instance leads, while it is promoted. Where it
// could not, those who follow wait for theirs, and this instance makes them when it looks at its server next.
func (x *commands) makeSlots(ctx context.Context, r *running.Server) (await func()) {
	made := make(chan error, 1)
	go func() {
		session, err := r.PostgreSQL.Connect(ctx)
		if err == nil {
			defer session.Close()
			err = session.EnsureSlots(ctx, x.slots())
		}
		made <- err
	}()
	return func() {
		ctx, cancel := context.WithTimeout(ctx, slotPatience)
		defer cancel()
		var err error
		select {
		case err = <-made:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			x.log.Warn("the standbys' slots could not be made yet", "error", err.Error())
		}
	}
}

// beginning is where the WAL of the last term of a term history begins: where that of the term before was left.
// After a promotion that was cut short and made again, the timeline of the server begins later. The term before
// may have been cut short so, too, and has no timeline on record then: this one begins with the first that was
// made after its election.
func (x *commands) beginning(timeline wal.Timeline, history []ha.TermStart) (wal.LSN, error) {
	n := len(history)
	if n <= 1 {
		return x.wal.Fork(timeline)
	}
	before, elected := history[n-2], history[n-1]
	if before.Timeline == 0 {
		return x.wal.ForkFrom(timeline, elected.LSN)
	}
	return x.wal.Branch(timeline, before.Timeline)
}

// inherit makes the volume ready for another term history. What is here of a timeline that this instance has no WAL of
// is of one that was abandoned, and may bear the number of the leader's.
func (x *commands) inherit() error {
	own := x.hardState().TermHistory
	stale, err := x.wal.HasTimelines(newest(own))
	if err != nil || !stale {
		return err
	}
	if r := x.current.Load(); r != nil {
		ctx, cancel := context.WithTimeout(x.life, stopDeadline)
		defer cancel()
		r.Process.Stop(ctx, stopFast) // it is started again
		if !running.Ended(r.Process) {
			return fmt.Errorf("forget abandoned timelines: %w", running.ErrNoEnd)
		}
	}
	return x.wal.ForgetTimelines(newest(own))
}

// newest is the highest number of a timeline that a term history has.
func newest(history []ha.TermStart) wal.Timeline {
	highest := wal.Timeline(1)
	for _, s := range history {
		highest = max(highest, s.Timeline)
	}
	return highest
}

// promoteTo promotes the server. Its commits wait by a rule from the first on, if it has always run with one.
func (x *commands) promoteTo(ctx context.Context, r *running.Server, session running.Session, rule ha.Rule) error {
	x.demands.require(rule)
	if err := r.ConfigurePrimary(); err != nil {
		return err
	}
	awaitSlots := x.makeSlots(ctx, r)
	begun := func() {
		if r.Standing.IsOpen() {
			x.publish() // what leads clients here takes as long as the promotion
		}
	}
	if err := session.Promote(ctx, begun); err != nil {
		return err
	}
	r.Standing.SetPromoted()
	awaitSlots()
	return nil
}

// promoteShut promotes a server that has run without a rule since it was started: while the configuration was one of
// durability async. It lets nobody in until its commits are seen to wait, and then they do so by the rule.
func (x *commands) promoteShut(ctx context.Context, r *running.Server, session running.Session, rule ha.Rule) error {
	x.log.Info("lets nobody in until commits are seen to wait", "rule", rule.String())
	if err := r.Shut(ctx, session); err != nil {
		return err
	}
	if err := x.promoteTo(ctx, r, session, ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}); err != nil {
		return err
	}
	if err := r.PostgreSQL.AwaitEnforced(ctx); err != nil {
		return err
	}
	r.Config.Unruled.Store(false)
	x.demands.require(rule)
	r.Standing.Open()
	return r.Config.Rewrite()
}

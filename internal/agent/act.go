package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// How long a server may take to stop: in order, and when it must be gone.
const (
	stopDeadline  = 90 * time.Second
	fenceDeadline = 5 * time.Second
	cutDeadline   = time.Second
)

// act does what was decided. Where the instance already is what it should be,
// there is nothing to do: who tends the server does the rest.
func (a *Agent) act(ctx context.Context, d ha.Decision) error {
	if a.running != nil && a.running.ended() {
		a.serverFailed(ctx)
		return nil // decide again, with this known
	}
	if a.running != nil && a.take(&a.restart) {
		a.Log.Info("restarting the server, as asked")
		return a.longStep(func() error { return a.stop(ctx) })
	}
	switch d.Action {
	case ha.Wait:
		return a.fence(ctx)
	case ha.Fence:
		return a.giveUp(ctx, d)
	case ha.Resign:
		return a.resign(ctx, d)
	case ha.Initialise:
		return a.longStep(func() error { return a.initialise(ctx) })
	case ha.Clone:
		return a.longStep(func() error { return a.clone(ctx, d) })
	case ha.Rewind:
		return a.longStep(func() error { return a.rewind(ctx, d) })
	case ha.Lead:
		return a.lead(ctx)
	case ha.Follow:
		return a.follow(ctx, d)
	case ha.Await:
		return a.await(ctx)
	case ha.Campaign:
		return a.campaign(ctx)
	case ha.Disown:
		return a.disown(ctx)
	default:
		return fmt.Errorf("nobody knows how to %q", d.Action)
	}
}

// initialise makes a new database system, where there is no data yet, and leads
// its first term. The memory comes first: whoever it names tries again.
func (a *Agent) initialise(ctx context.Context) error {
	_, err := a.memory.Change(func(m *ha.Memory) bool {
		leadAlone(m, a.Name, 1)
		return true
	})
	if err != nil {
		return err
	}
	if present, err := a.server.HasData(); err != nil || present {
		return err
	}
	return a.server.Initialise(ctx, a.ServerLog)
}

// rewind takes back what the leader never had. The leader's lineage comes with it.
func (a *Agent) rewind(ctx context.Context, d ha.Decision) error {
	source, err := a.makeWay(ctx, d)
	if err != nil {
		return err
	}
	err = a.server.Rewind(ctx, source, a.ServerLog)
	// PostgreSQL 15 takes a primary that has not written a checkpoint since its
	// promotion for one of the timeline before: that passes.
	early := errors.Is(err, postgres.ErrSameTimeline) && time.Since(a.watch.since) < checkpointDeadline
	a.watch.rewindFailed = err != nil && !early
	return errors.Join(err, a.memory.reloadLineage())
}

// makeWay stops the server and forgets what was known of its data, which is
// about to be replaced from the source.
func (a *Agent) makeWay(ctx context.Context, d ha.Decision) (postgres.Upstream, error) {
	source, err := a.source(d)
	if err != nil {
		return source, err
	}
	if err := a.stop(ctx); err != nil {
		return source, err
	}
	a.watch.known, a.watch.end = false, 0
	a.report(func(s *protocol.Status) { s.SystemIdentifier, s.LSN, s.Streaming = "", "", false })
	return source, nil
}

// source says how to reach the leader in order to copy from it.
func (a *Agent) source(d ha.Decision) (postgres.Upstream, error) {
	m, err := a.upstream(d.Target)
	if err != nil {
		return postgres.Upstream{}, err
	}
	return postgres.Upstream{
		Host: m.Host, Address: a.peers.address(m), Port: naming.PortPostgreSQL,
		Name: string(a.memory.Get().Voter), Slot: naming.Slot(a.Name), Term: d.Ballot.Term,
	}, nil
}

// lead makes the instance the primary of the term that it has won.
func (a *Agent) lead(ctx context.Context) error {
	if a.running != nil && a.running.role == ha.ServerPrimary {
		return a.confirm(ctx)
	}
	m := a.memory.Get()
	if len(m.Lineage) == 0 {
		if err := a.memory.SetLineage([]ha.Start{{Term: m.Won, LSN: 0, Timeline: 1}}); err != nil {
			return err
		}
		m = a.memory.Get()
	}
	if m.Lineage[len(m.Lineage)-1].Timeline == 0 {
		// It was elected, and ended before it had a timeline of its own: by now others may have elected another.
		if err := a.await(ctx); err != nil {
			return err
		}
		if backed, _ := a.backed(ctx); !backed {
			return nil // asked again at the next look
		}
		return a.begin(ctx)
	}
	if err := a.stop(ctx); err != nil {
		return err
	}
	err := a.longStep(func() error { return a.start(ctx, ha.ServerPrimary, ha.Ballot{}) })
	if err != nil {
		a.watch.failed = err.Error() // others may be able to lead
		return err
	}
	return a.confirm(ctx)
}

// follow makes the instance a standby of the leader.
func (a *Agent) follow(ctx context.Context, d ha.Decision) error {
	if a.running != nil && a.running.role == ha.ServerPrimary {
		return a.fence(ctx)
	}
	if a.running != nil && a.running.following() == d.Ballot {
		return nil
	}
	if err := a.inherit(ctx, d); err != nil {
		return err
	}
	a.watch.known = false
	if a.running == nil {
		return a.longStep(func() error { return a.start(ctx, ha.ServerStandby, d.Ballot) })
	}
	a.Log.Info("following", "leader", d.Target, "term", d.Ballot.Term)
	return a.running.turnTo(d.Ballot)
}

// inherit takes over the leader's lineage: from here on its WAL is ours. What is
// here of a timeline that this instance has no WAL of is of one that was abandoned,
// and may bear the number of the leader's.
func (a *Agent) inherit(ctx context.Context, d ha.Decision) error {
	status, _, ok := a.peers.last(d.Target)
	if !ok {
		return nil // followed before; its lineage is known
	}
	lineage := status.Election.Lineage
	if len(lineage) == 0 {
		return fmt.Errorf("%s does not say whose WAL it has", d.Target)
	}
	own := newest(a.memory.Get().Lineage)
	stale, err := a.server.HasTimelines(own)
	if err != nil {
		return err
	}
	if stale {
		if err := a.stop(ctx); err != nil {
			return err
		}
		if err := a.server.ForgetTimelines(own); err != nil {
			return err
		}
	}
	return a.memory.SetLineage(lineage)
}

// newest is the highest number of a timeline that a lineage has.
func newest(lineage []ha.Start) uint32 {
	highest := uint32(1)
	for _, s := range lineage {
		highest = max(highest, s.Timeline)
	}
	return highest
}

// await makes the instance a standby of nobody: nothing is received, all that is
// there is replayed, and so the end of its WAL is known.
func (a *Agent) await(ctx context.Context) error {
	if a.running != nil && a.running.role == ha.ServerPrimary {
		return a.fence(ctx)
	}
	if a.running == nil {
		return a.longStep(func() error { return a.start(ctx, ha.ServerStandby, ha.Ballot{}) })
	}
	if a.running.following() == (ha.Ballot{}) {
		return nil
	}
	return a.cut(ctx, a.memory.Get().Ballot.Term)
}

// cut ends what the instance receives from leaders of earlier terms, and keeps it so.
func (a *Agent) cut(ctx context.Context, term uint64) error {
	if err := a.server.Revoke(term); err != nil {
		return err
	}
	if a.running == nil {
		return nil
	}
	if err := a.running.turnTo(ha.Ballot{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cutDeadline)
	defer cancel()
	return a.running.process.StopReceiving(ctx)
}

// resign stops the primary in order, so that its successors can have all its WAL.
func (a *Agent) resign(ctx context.Context, d ha.Decision) error {
	a.Log.Info("resigning", "term", d.Ballot.Term, "reason", d.Reason)
	if err := a.longStep(func() error { return a.stop(ctx) }); err != nil {
		return err
	}
	control, err := a.server.Control(ctx)
	if err != nil {
		return err
	}
	end, err := ha.ParseLSN(control.Checkpoint)
	if err != nil {
		return err
	}
	// The shutdown's record begins there: who has any of it has all before it.
	a.watch.end, a.watch.known = end+1, true
	a.resigned(d)
	return nil
}

// giveUp stops the primary at once and leaves the lead to others.
func (a *Agent) giveUp(ctx context.Context, d ha.Decision) error {
	if err := a.fence(ctx); err != nil {
		return err
	}
	if d.Reason != "Isolated" { // nobody would hear it
		a.resigned(d)
	}
	return nil
}

func (a *Agent) resigned(d ha.Decision) {
	a.watch.resigned, a.watch.resignedTerm, a.watch.successor = time.Now(), d.Ballot.Term, d.Target
	a.watch.failed = ""
	a.look() // and tell the others
}

// serverFailed takes note that the server has ended by itself.
func (a *Agent) serverFailed(ctx context.Context) {
	role, err := a.running.role, a.running.process.Err()
	a.Log.Warn("the server has ended", "role", string(role), "error", err.Error())
	if fenced := a.fence(ctx); fenced != nil {
		a.Log.Error("what is left of the server could not be ended", "error", fenced.Error())
	}
	a.report(func(s *protocol.Status) { s.Reason, s.Message = "ServerEnded", err.Error() })
	if role == ha.ServerPrimary {
		a.watch.failed = err.Error()
	}
	a.look()
}

// fence ends the server at once, in whatever state it is.
func (a *Agent) fence(ctx context.Context) error {
	a.report(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming, s.LSN = protocol.RoleNone, false, false, "" })
	if a.running == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fenceDeadline)
	defer cancel()
	// First the server, then who looks after it: nobody is waited for.
	if err := a.running.process.Fence(ctx); err != nil {
		return err
	}
	a.running.letGo()
	a.Log.Info("the server has been stopped at once", "role", string(a.running.role))
	a.running = nil
	return nil
}

// stop stops the server in order: a checkpoint before the sessions are ended, so
// that nobody waits for it, and the end of the WAL for the standbys.
func (a *Agent) stop(ctx context.Context) error {
	if a.running == nil {
		return nil
	}
	r := a.running
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopDeadline)
	defer cancel()
	if r.role == ha.ServerPrimary {
		r.checkpoint(ctx)
	}
	a.report(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming = protocol.RoleNone, false, false })
	r.letGo()
	r.process.Stop(ctx, postgres.StopFast)
	a.running = nil
	a.Log.Info("the server has stopped", "role", string(r.role))
	return nil
}

// endServer is the end of the role loop: PostgreSQL has stopped when it returns.
func (a *Agent) endServer(ctx context.Context) {
	a.setBusy(true)
	if err := a.stop(ctx); err != nil {
		a.Log.Error("the server could not be stopped in order", "error", err.Error())
	}
}

// serverEnded is closed when the running server has ended; without one it never is.
func (a *Agent) serverEnded() <-chan struct{} {
	if a.running == nil {
		return nil
	}
	return a.running.process.Done()
}

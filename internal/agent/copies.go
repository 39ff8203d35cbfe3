package agent

import (
	"context"
	"errors"
	"fmt"
	"io"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
)

// copied is what makes data: a postgres.Server.
type copied interface {
	Initialise(ctx context.Context, progress io.Writer) error
	Clone(ctx context.Context, source postgres.Upstream, mayDiscard func(whole bool) error, progress io.Writer) error
	Rewind(ctx context.Context, source postgres.Upstream, progress io.Writer) error
}

// copies makes the data of the instance, and puts that of a leader in its place.
type copies struct {
	server    copied
	mark      func() error // that the data is forked
	serverLog io.Writer
	data      *dataWatch
	states    *volume.StateStore
	status    *status.Board
	// upstream says how the data of a leader is had, ask asks the machine, stop stops the server.
	upstream func(leader ha.Ballot) (postgres.Upstream, error)
	ask      func(ctx context.Context, id uint64, event machine.Event) (machine.Effect, error)
	stop     func(ctx context.Context) (wal.LSN, error)
}

// do carries a command out that changes the data, and says what lies there then.
func (x *copies) do(ctx context.Context, c machine.Command) (d machine.Done, err error) {
	defer x.data.see()
	switch c.Kind {
	case machine.Initialise:
		err = x.server.Initialise(ctx, x.serverLog)
	case machine.Clone:
		err = x.clone(ctx, c)
	case machine.Rewind:
		err = x.rewind(ctx, c)
	case machine.MarkForked:
		err = x.mark()
	default:
		err = fmt.Errorf("nobody knows how to %q", c.Kind)
	}
	d.NoRoom, d.SameTimeline = errors.Is(err, postgres.ErrNoRoom), errors.Is(err, postgres.ErrSameTimeline)
	d.Unreached = errors.Is(err, postgres.ErrUnreached) || errors.Is(err, errNotBegun)
	if d.NoRoom {
		x.data.folder.LackRoom()
	}
	if c.Kind == machine.Clone || c.Kind == machine.Rewind {
		err = errors.Join(err, x.states.ReloadTermHistory())
		d.TermHistory = x.states.Get().TermHistory
	}
	return d, err
}

// clone copies the data of the leader. Its term history comes with it.
func (x *copies) clone(ctx context.Context, c machine.Command) error {
	source, err := x.makeWay(ctx, c)
	if err != nil {
		return err
	}
	return x.server.Clone(ctx, source, func(whole bool) error { return x.mayDiscard(ctx, c, whole) }, x.serverLog)
}

// mayDiscard asks the machine whether the data here may be given up for a copy, or why not.
func (x *copies) mayDiscard(ctx context.Context, c machine.Command, whole bool) error {
	answer, err := x.ask(ctx, c.ID, machine.DiscardAsked{ID: c.ID, Whole: whole})
	if err != nil {
		return err
	}
	if reply, ok := answer.(machine.ReplyDiscard); ok && reply.Needed != "" {
		return errors.New(reply.Needed)
	}
	if !whole {
		x.status.Change(func(s *protocol.Status) { s.Data = protocol.DataEmpty })
	}
	return nil
}

// errNotBegun says that a rewind was not begun: the data is as it was, and says nothing against a rewind.
var errNotBegun = errors.New("the rewind was not begun")

// rewind takes back what the leader never had. The leader's term history comes with it.
func (x *copies) rewind(ctx context.Context, c machine.Command) error {
	source, err := x.makeWay(ctx, c)
	if err == nil {
		err = x.mayDiscard(ctx, c, true)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	return x.server.Rewind(ctx, source, x.serverLog)
}

// makeWay stops the server and forgets what was known of its data, which is about to be replaced from the source.
func (x *copies) makeWay(ctx context.Context, c machine.Command) (postgres.Upstream, error) {
	if _, err := x.upstream(c.Ballot); err != nil {
		return postgres.Upstream{}, err
	}
	if _, err := x.stop(ctx); err != nil {
		return postgres.Upstream{}, err
	}
	x.status.Change(func(s *protocol.Status) { s.SystemIdentifier, s.LSN, s.Streaming = "", "", false })
	return x.upstream(c.Ballot)
}

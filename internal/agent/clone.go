package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// copying is a copy of the leader's data that goes on.
type copying struct {
	*Agent
	ballot ha.Ballot
	began  time.Time
	// end is that of the WAL here, 0 while it is not known.
	end ha.LSN
}

// clone copies the data of the leader. Its lineage comes with it.
func (a *Agent) clone(ctx context.Context, d ha.Decision) error {
	c := &copying{Agent: a, ballot: d.Ballot, end: a.endBeforeCopy(ctx, d.Ballot.Term)}
	source, err := a.makeWay(ctx, d)
	if err != nil {
		return err
	}
	c.began = time.Now()
	err = a.server.Clone(ctx, source, func() error { return c.mayDiscard(ctx) }, a.ServerLog)
	if errors.Is(err, postgres.ErrNoRoom) {
		a.watch.lackRoom(a.server)
	}
	if err != nil {
		return err
	}
	a.watch.rewindFailed, a.watch.lacksRoom = false, 0
	a.watch.stall(false, false) // what was stuck is gone with the data
	return a.memory.reloadLineage()
}

// endBeforeCopy is how far the WAL of a standby goes that is to be copied anew, 0 where that can't be learned. It receives nothing any more then.
func (a *Agent) endBeforeCopy(ctx context.Context, term uint64) ha.LSN {
	if a.running != nil && a.running.role == ha.ServerPrimary || a.running == nil && !a.watch.known {
		return 0
	}
	end, err := a.finalEnd(ctx, term)
	if err != nil {
		a.Log.Info("it is not known how far the WAL here goes", "error", err.Error())
		return 0
	}
	return end
}

// mayDiscard says whether the data here may be given up for the copy, or why not. Only what others have said since it began counts: who says then
// that it is not being rebuilt itself does not count on what is given up here.
func (c *copying) mayDiscard(ctx context.Context) error {
	if err := c.catchUp(); err != nil {
		return err
	}
	view := c.observe(ctx)
	for name := range view.Peers {
		if _, asked, _ := c.peers.last(name); !asked.After(c.began) {
			delete(view.Peers, name)
		}
	}
	if now := view.Local.Memory.Ballot; now != c.ballot {
		return fmt.Errorf("the copy is of the leader of term %d, and the term is %d by now", c.ballot.Term, now.Term)
	}
	if c.end == 0 {
		c.end = view.Peers[c.ballot.Leader].Written
	}
	view.Local.End = c.end
	if needed := view.DataNeeded(); needed != nil {
		return errors.New(needed.Message)
	}
	c.Log.Info("gives up its data for the copy that has begun: the volume has no room for both")
	c.report(func(s *protocol.Status) { s.Data = protocol.DataEmpty })
	c.tell()
	return nil
}

// moreRoom is how much more must be free than when a copy did not fit, in bytes, before it is tried again whether it does.
const moreRoom = 256 << 20

// lackRoom notes that a copy does not fit beside the data.
func (w *watch) lackRoom(server *postgres.Server) {
	if free, err := server.FreeSpace(); err == nil {
		w.lacksRoom = free + moreRoom
	}
}

// noRoom says that a copy did not fit beside the data, and that there is no more room since.
func (a *Agent) noRoom() bool {
	if a.watch.lacksRoom == 0 {
		return false
	}
	free, err := a.server.FreeSpace()
	return err != nil || free < a.watch.lacksRoom
}

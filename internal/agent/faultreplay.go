package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// replayPatience is how long a server may take to pause its replay, or to go on.
const replayPatience = 2 * time.Second

// replaying is what a fault does to a standby's replay: a postgres.Session.
type replaying interface {
	PauseReplay(ctx context.Context) error
	ResumeReplay(ctx context.Context) error
}

// pauseReplay pauses the replay of this standby for a while. Where that is in the way of an election it ends earlier:
// see postgres.HastenReplay.
func (f *faults) pauseReplay(o protocol.FaultOrder) error {
	r := f.current.Load()
	switch {
	case r == nil:
		return errNoServer
	case r.standing.role() == ha.ServerPrimary:
		return errors.New("this instance is the primary, which replays no WAL: it has changed since it was chosen")
	}
	pauses := func() error { return r.replay(replaying.PauseReplay) }
	return f.last(o, pauses, func() error {
		if ended(r.process) {
			return nil // another server begins with a replay that goes on
		}
		return r.replay(replaying.ResumeReplay)
	})
}

// replay does something to the replay of the server.
func (r *running) replay(do func(replaying, context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), replayPatience)
	defer cancel()
	session, err := r.server.Connect(ctx)
	if err != nil {
		return fmt.Errorf("ask the server about its replay: %w", err)
	}
	defer session.Close()
	replay, ok := session.(replaying)
	if !ok {
		return errors.New("the replay of this server can't be paused on purpose")
	}
	return do(replay, ctx)
}

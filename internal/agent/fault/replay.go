package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/agent/running"
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
	r := f.Current.Load()
	switch {
	case r == nil:
		return running.ErrNoServer
	case r.Standing.Role() == ha.ServerPrimary:
		return errors.New("this instance is the primary, which replays no WAL: it has changed since it was chosen")
	}
	pauses := func() error { return replay(r, replaying.PauseReplay) }
	return f.last(o, pauses, func() error {
		if running.Ended(r.Process) {
			return nil // another server begins with a replay that goes on
		}
		return replay(r, replaying.ResumeReplay)
	})
}

// replay does something to the replay of a server.
func replay(r *running.Server, do func(replaying, context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), replayPatience)
	defer cancel()
	session, err := r.PostgreSQL.Connect(ctx)
	if err != nil {
		return fmt.Errorf("ask the server about its replay: %w", err)
	}
	defer session.Close()
	replays, ok := session.(replaying)
	if !ok {
		return errors.New("the replay of this server can't be paused on purpose")
	}
	return do(replays, ctx)
}

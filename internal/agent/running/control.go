package running

import (
	"context"
	"errors"
	"fmt"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
)

// control is the session of the commands with a running server: it is there when a vote must not wait.
type control struct {
	server   PostgreSQL
	standing *Standing
	// unelected is called when the server turns out to be promoted without an election.
	unelected func()
	session   Session
}

// Connect is the session, a new one where there is none that works.
func (c *control) Connect(ctx context.Context) (Session, error) {
	if c.session != nil && !c.session.Broken() {
		return c.session, nil
	}
	session, err := c.server.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c.session = session
	return session, nil
}

func (c *control) close() {
	if c.session != nil {
		c.session.Close()
		c.session = nil
	}
}

// readersDelay is how long readers at a standby may hold up an election.
const readersDelay = 100 * time.Millisecond

// AwaitEnd waits until the end of the WAL of a standby that receives nothing is known, and where that is asked for,
// until all of it is replayed.
func (c *control) AwaitEnd(ctx context.Context, replayed bool) (postgres.End, error) {
	session, err := c.Connect(ctx)
	if err != nil {
		return postgres.End{}, err
	}
	looks := pause.Growing{Least: 2 * time.Millisecond, Most: 50 * time.Millisecond}
	for began := time.Now(); ; {
		end, err := session.EndOfWAL(ctx)
		if err != nil {
			return postgres.End{}, err
		}
		if end.Known && (end.Unreplayed == 0 || !replayed) {
			return c.endAsStandby(ctx, session, end)
		}
		if replayed {
			if err := session.HastenReplay(ctx, time.Since(began) > readersDelay); err != nil {
				return postgres.End{}, err
			}
		}
		if !looks.For(ctx) {
			return postgres.End{}, fmt.Errorf("wait for the end of the WAL, with %d bytes to replay: %w",
				end.Unreplayed, ctx.Err())
		}
	}
}

// endAsStandby is the end of the WAL of a server that is a standby. One that was promoted without an election may
// have written more than that.
func (c *control) endAsStandby(ctx context.Context, session Session, end postgres.End) (postgres.End, error) {
	state, err := session.State(ctx)
	if err != nil {
		return postgres.End{}, err
	}
	if !state.InRecovery && !c.standing.IsPrimary() {
		c.unelected()
		return postgres.End{}, errors.New("the server has been promoted without an election")
	}
	return end, nil
}

package agent

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Times of the role loop.
const (
	tickInterval  = time.Second
	queryDeadline = 5 * time.Second
	firstRetry    = 250 * time.Millisecond
	lastRetry     = 10 * time.Second
)

// roleLoop decides what the instance is and is that, until it is told otherwise.
func (a *Agent) roleLoop(ctx context.Context) error {
	retry := firstRetry
	for ctx.Err() == nil {
		d, err := a.decide(ctx)
		if err == nil {
			a.announce(d)
			err = a.be(ctx, d)
		}
		if ctx.Err() != nil {
			break
		}
		if err == nil {
			retry = firstRetry
			continue
		}
		a.Log.Error("the instance could not do what was decided", "action", string(d.Action), "error", err.Error())
		a.report(func(s *protocol.Status) { s.Ready, s.Reason, s.Message = false, "Failed", err.Error() })
		a.pause(ctx, retry)
		retry = min(2*retry, lastRetry)
	}
	return nil
}

// announce logs a decision when it is another one, and puts it into the status.
func (a *Agent) announce(d ha.Decision) {
	if d.Action != a.last.Action || d.Target != a.last.Target || d.Reason != a.last.Reason || d.Ballot != a.last.Ballot {
		a.Log.Info("decided", "action", string(d.Action), "target", d.Target, "term", d.Ballot.Term, "reason", d.Reason, "message", d.Message)
	}
	a.last = d
	a.report(func(s *protocol.Status) { s.Reason, s.Message = d.Reason, d.Message })
}

// be does what was decided. Being primary or standby lasts until the decision
// changes, the server ends, or a restart is asked for.
func (a *Agent) be(ctx context.Context, d ha.Decision) error {
	a.settle(d.Action == ha.Lead || d.Action == ha.Follow)
	switch d.Action {
	case ha.Initialise:
		return a.longStep(func() error { return a.server.Initialise(ctx, a.ServerLog) })
	case ha.Clone:
		return a.longStep(func() error { return a.clone(ctx, d.Target) })
	case ha.Lead:
		return a.runPrimary(ctx, d)
	case ha.Follow:
		return a.runStandby(ctx, d)
	case ha.Wait:
		a.report(func(s *protocol.Status) { s.Role, s.Ready, s.Streaming, s.LSN = protocol.RoleNone, false, false, "" })
		a.pause(ctx, tickInterval)
		return nil
	default:
		return fmt.Errorf("nobody knows how to %q", d.Action)
	}
}

// settle tells the peers' actor whom to ask and how often.
func (a *Agent) settle(settled bool) {
	a.peers.tell(a.currentConfig().Members, settled)
}

// clone copies the data of the primary. The system identifier is read anew from
// what came.
func (a *Agent) clone(ctx context.Context, target string) error {
	upstream, err := a.upstream(target)
	if err != nil {
		return err
	}
	a.report(func(s *protocol.Status) { s.SystemIdentifier, s.LSN, s.Streaming = "", "", false })
	return a.server.Clone(ctx, upstream, a.ServerLog)
}

// upstream says how to reach an instance as a standby of it.
func (a *Agent) upstream(target string) (postgres.Upstream, error) {
	for _, m := range a.currentConfig().Members {
		if m.Name == target {
			return postgres.Upstream{
				Host: m.Host, Address: a.peers.address(m), Port: naming.PortPostgreSQL,
				Name: a.Name, Slot: naming.Slot(a.Name),
			}, nil
		}
	}
	return postgres.Upstream{}, fmt.Errorf("the primary %s is not among the members", target)
}

// pause waits until there is news, or d has passed.
func (a *Agent) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-a.wake:
	case <-timer.C:
	}
	a.setBusy(false)
}

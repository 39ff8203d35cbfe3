package agent

import (
	"context"
	"time"

	"toban.dev/internal/ha"
)

// begin makes the server of a winner a primary, when none of an earlier term can serve any more.
func (a *Agent) begin(ctx context.Context) error {
	if may, err := a.overtake(ctx); err != nil || !may {
		return err
	}
	return a.longStep(func() error { return a.promote(ctx) })
}

// overtake waits until a leader of an earlier term that holds on by the Kubernetes API can't any more. That takes long only where there is
// one. Where the API does not answer, nobody is waited for. It says whether this instance still is the one to lead.
func (a *Agent) overtake(ctx context.Context) (may bool, err error) {
	ballot := a.memory.Get().Ballot
	if a.Cluster == nil || a.watch.overtakes != ballot.Term {
		return true, nil
	}
	local := ha.Local{Memory: a.memory.Get(), Limits: a.limits()}
	a.measureQuorum(&local)
	asking, cancel := context.WithTimeout(ctx, overtakeDeadline)
	wait, ok, err := a.witness.overtake(asking, ballot, local.Alone > unconfirmedLooks)
	cancel()
	switch {
	case err != nil:
		a.Log.Warn("leads without knowing whether another holds on by the Kubernetes API", "term", ballot.Term, "error", err.Error())
		return true, nil
	case !ok:
		return false, nil // a later term is on record there, and seen from now on
	case !wait:
		a.watch.overtakes = 0
		return true, nil
	}
	a.Log.Info("waiting until a leader of an earlier term no longer holds on by the Kubernetes API", "term", ballot.Term)
	a.awaitRelease(ctx, ballot.Term)
	a.watch.overtakes = 0
	local.Memory = a.memory.Get()
	a.measureQuorum(&local)
	return local.Memory.Ballot == ballot && local.MayServe(), ctx.Err()
}

// releaseInterval is how often is looked whether a leader that was overtaken has stopped.
const releaseInterval = 100 * time.Millisecond

// awaitRelease waits until no leader of a term before is on record any more as one that holds on, or can't in any case.
func (a *Agent) awaitRelease(ctx context.Context, term uint64) {
	for end := time.Now().Add(a.limits().Overtake); time.Now().Before(end) && ctx.Err() == nil; {
		a.serveFor(ctx, min(releaseInterval, time.Until(end)))
		looking, cancel := context.WithDeadline(ctx, end)
		m, err := a.Cluster.Witness(looking)
		cancel()
		if err == nil && !m.HeldBefore(term) {
			return
		}
	}
}

// serveFor waits, and does meanwhile what others ask for.
func (a *Agent) serveFor(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case task := <-a.tasks:
			task(ctx)
		}
	}
}

package agent

import (
	"context"
	"time"

	"toban.dev/internal/protocol"
)

// publishDeadline bounds one attempt to tell the cluster the role.
const publishDeadline = 2 * time.Second

// publishRetry is the longest pause between attempts: clients wait for it.
const publishRetry = time.Second

// wantPublished asks for a role to be published. The last wish counts.
func (a *Agent) wantPublished(role protocol.Role) {
	select {
	case <-a.publish:
	default:
	}
	a.publish <- role
}

// publishLoop tells the cluster the role of this instance, once for each change,
// apart from the role loop: an API server that is away must not slow it down.
func (a *Agent) publishLoop(ctx context.Context) error {
	published, term := protocol.RoleNone, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil
		case role := <-a.publish:
			now := a.memory.Get().Ballot.Term
			if role == published && (term == now || role != protocol.RolePrimary) || a.Cluster == nil {
				continue
			}
			if a.publishUntilDone(ctx, role) {
				published, term = role, now
			}
		}
	}
}

// publishUntilDone tries until it works or there is another wish. A primary that
// leads no more does not try on.
func (a *Agent) publishUntilDone(ctx context.Context, role protocol.Role) bool {
	for retry := firstRetry; ; retry = min(2*retry, publishRetry) {
		one, cancel := context.WithTimeout(ctx, publishDeadline)
		err := a.Cluster.Publish(one, role, a.peers.names())
		cancel()
		if err == nil {
			a.Log.Info("the role is published", "role", string(role))
			return true
		}
		a.Log.Warn("the role could not be published", "role", string(role), "error", err.Error())
		if !sleep(ctx, retry) || len(a.publish) > 0 || a.Status().Role != role {
			return false
		}
	}
}

package agent

import (
	"context"
	"time"

	"toban.dev/internal/protocol"
)

// publishDeadline bounds one attempt to tell the cluster the role.
const publishDeadline = 5 * time.Second

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
	published := protocol.RoleNone
	for {
		select {
		case <-ctx.Done():
			return nil
		case role := <-a.publish:
			if role == published || a.Publish == nil {
				continue
			}
			if a.publishUntilDone(ctx, role) {
				published = role
			}
		}
	}
}

// publishUntilDone tries until it works or there is another wish.
func (a *Agent) publishUntilDone(ctx context.Context, role protocol.Role) bool {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		one, cancel := context.WithTimeout(ctx, publishDeadline)
		err := a.Publish(one, role)
		cancel()
		if err == nil {
			a.Log.Info("the role is published", "role", string(role))
			return true
		}
		a.Log.Warn("the role could not be published", "role", string(role), "error", err.Error())
		if !sleep(ctx, retry) || len(a.publish) > 0 {
			return false
		}
	}
}

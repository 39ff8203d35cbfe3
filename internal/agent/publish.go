package agent

import (
	"context"
	"time"

	"toban.dev/internal/agent/pause"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// Cluster is what an agent asks of the Kubernetes cluster around it. It may be
// away at any time: only the witness of two instances is ever waited for.
type Cluster interface {
	// Publish makes the Services find this instance in a role, and no other as primary.
	Publish(ctx context.Context, role protocol.Role, others []string) error
	// Published is the role in which the Services find this instance.
	Published(ctx context.Context) (protocol.Role, error)
	// Operate does something at the witness, and says what is on record then; its Voter is the identity of the object.
	Operate(ctx context.Context, o ha.WitnessOperation) (ha.Memory, ha.WitnessAnswer, error)
}

// publishDeadline bounds one attempt to tell the cluster the role.
const publishDeadline = 2 * time.Second

// firstRetry and publishRetry are the shortest and the longest pause between attempts: clients wait for it.
const (
	firstRetry   = 250 * time.Millisecond
	publishRetry = time.Second
)

// firstCheck and lastCheck are after how long a primary looks whether the cluster still has it as that: soon after it was
// published, when the one before may still be at it, and then less and less often.
const (
	firstCheck = time.Second
	lastCheck  = time.Minute
)

// wantPublished asks for a role to be published. The last wish counts.
func (a *Agent) wantPublished(role protocol.Role) {
	for {
		select {
		case a.publish <- role:
			return
		default:
		}
		select {
		case <-a.publish: // a former wish
		default:
		}
	}
}

// publication is what the cluster was told last.
type publication struct {
	role protocol.Role
	term uint64
	// check is when to look whether it is still so, pause how long that was.
	check time.Time
	pause time.Duration
}

// publishLoop tells the cluster the role of this instance, once for each change,
// apart from the role loop: an API server that is away must not slow it down.
func (a *Agent) publishLoop(ctx context.Context) error {
	var last publication
	for {
		select {
		case <-ctx.Done():
			return nil
		case role := <-a.publish:
			term, leads := a.led()
			switch {
			case a.Cluster == nil, role == protocol.RolePrimary && !leads:
				// One over whom another is being elected has nothing to publish: it would take the Services from that one.
			case role != last.role, role == protocol.RolePrimary && term != last.term:
				if a.publishUntilDone(ctx, role) {
					last = publication{role, term, time.Now().Add(firstCheck), firstCheck}
				}
			case role == protocol.RolePrimary && time.Now().After(last.check):
				a.checkPublished(ctx, &last)
			}
		}
	}
}

// led is the term that this instance leads.
func (a *Agent) led() (term uint64, leads bool) {
	m := a.memory.Get()
	return m.Won, m.Won > 0 && m.Won == m.Ballot.Term && m.Ballot.Leader == a.Name
}

// checkPublished looks whether the cluster has this instance as primary still. If not, it is published again with the next wish.
func (a *Agent) checkPublished(ctx context.Context, last *publication) {
	last.pause = min(2*last.pause, lastCheck)
	last.check = time.Now().Add(last.pause)
	one, cancel := context.WithTimeout(ctx, publishDeadline)
	defer cancel()
	role, err := a.Cluster.Published(one)
	if err != nil {
		return // unknown, and looked at again
	}
	if role != protocol.RolePrimary {
		a.Log.Warn("somebody has taken the primary's role from this instance's Pod", "role", string(role))
		last.role = protocol.RoleNone
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
		if !pause.For(ctx, retry) || len(a.publish) > 0 || a.Status().Role != role {
			return false
		}
		if _, leads := a.led(); role == protocol.RolePrimary && !leads {
			return false
		}
	}
}

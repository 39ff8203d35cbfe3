package world

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	"toban.dev/internal/protocol"
)

// AgentPrograms gives agents the operator's own program to go on as (docs/upgrade.md, "The operator and its agents").
type AgentPrograms interface {
	// Program is the operator's own.
	Program() (protocol.Program, error)
	// GiveProgram gives it to an agent.
	GiveProgram(ctx context.Context, cluster types.UID, host string, config protocol.Config) error
}

// Patience is how long an agent may take to do what it is asked for.
const Patience = 2 * time.Second

// PatiencePassword is how long it may take to change a password, a commit that waits for standbys as others do.
const PatiencePassword = 10 * time.Second

// Agents talks to the agents of SampleDBs; package agents has the real one. The cluster is the SampleDB's UID,
// the host an instance's address.
type Agents interface {
	// Sync gives an agent its config and returns how its instance is. It does not wait long for one that is not known
	// to be slow: its error is agents.ErrDoubted then, and more is told by Changed.
	Sync(ctx context.Context, cluster types.UID, host string, config protocol.Config) (protocol.Status, error)
	// Restart asks an agent to restart its server.
	Restart(ctx context.Context, cluster types.UID, host string, config protocol.Config, reason string) error
	// Switchover asks the primary's agent to hand over, and returns how its instance is.
	Switchover(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.Switchover) (protocol.Status, error)
	// Publish asks the primary's agent to have the Services lead to its instance, and to no other.
	Publish(ctx context.Context, cluster types.UID, host string, config protocol.Config) error
	// Password asks the primary's agent to give a role another password.
	Password(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.PasswordRequest) (protocol.PasswordResult, error)
	// Changed has an event for each SampleDB of which more is known than before about who answers.
	Changed() <-chan ctrlevent.GenericEvent
	// Forget drops what is kept for a SampleDB that is gone.
	Forget(cluster types.UID)
}

// Reachable says that a Pod has an address at which its agent may listen.
func Reachable(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning
}

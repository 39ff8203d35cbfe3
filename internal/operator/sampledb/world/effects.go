package world

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlevent "sigs.k8s.io/controller-runtime/pkg/event"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/protocol"
)

// Act is what topics change things with, for one SampleDB.
type Act struct {
	*World
	*Effects
}

// Base is what each topic of a folder has: what is known, what it acts with, all topics of the folder, and whom it asks
// for something else.
type Base[Topics, Others any] struct {
	*Act
	All    *Topics
	Others Others
}

// Effects are what topics act with.
type Effects struct {
	Client      client.Client
	Reader      client.Reader
	Agents      Agents
	Programs    AgentPrograms
	Pods        Pods
	Poolers     Poolers
	Credentials *credentials.Store
	Settings    desired.Settings
	Copies      *limits.Places
	Metrics     *metrics.Metrics
	Events      events.EventRecorder
	Statuses    *freshness.Statuses[v1.SampleDBStatus]
	NoClasses   bool
	*Memory
}

// Memory is what is remembered of SampleDBs from one reconcile to the next.
type Memory struct {
	// Giving is held while an agent is given a program: one at a time.
	Giving sync.Mutex

	Attempts      attempts
	Leases        leases
	Unanswered    unanswered
	PacedMachines paced
	PacedVain     paced
	Leaderless    unanswered
	// UnsaidSorting is since when a primary does not say which indexes another library may put out of order.
	UnsaidSorting unanswered
	Cancelled     cancelledCommits
}

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

// Annexes are what a SampleDB does without: each adds here what the core does with it.
type Annexes struct {
	// Phases are their steps of a reconcile.
	Phases []Phase
	// Record notes in the status what has to be there before anything rests on it, and says whether there was
	// something: then it is read anew.
	Record []func(context.Context) (bool, error)
	// Conditions set those of their own, in their order.
	Conditions []func(set SetCondition)
	// Look is after how long the SampleDB is looked at again at the latest, 0 where it need not be.
	Look []func() time.Duration

	// End has nothing go on in a SampleDB that is being deleted, and names what the deletion waits for, "" for nothing.
	End []func(context.Context) (waiting string, err error)
	// Saved says that another last backup has all than the one of the SampleDB's own instances, which is not needed
	// then; Lacks what that one may lack, and Stays where else data is that was written last, "" for nothing.
	Saved        []func(context.Context) (bool, error)
	Lacks, Stays []func() string
}

// Phase is a step of a reconcile that is done before another one. Where it is apart nothing rests on it, and the
// reconcile goes on after its failure.
type Phase struct {
	Name, Before string
	Run          func(context.Context) error
	Apart        bool
}

// SetCondition sets a condition of the status, where it has something to say.
type SetCondition func(kind string, v Verdict)

// Rest is what an annex asks the core for.
type Rest interface {
	// Unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
	Unready() *Verdict
	// Known is what was learned before and must be kept.
	Known() (desired.Known, error)
	// ApplyConfig writes the ConfigMap.
	ApplyConfig(context.Context) error
	// KeepUp keeps the database running until its last backup is taken.
	KeepUp(context.Context) error
	// DueFinish notes that an act has left something to do in the databases; the sentence says which.
	DueFinish(sentence string, parts ...v1.FinishPart)
}

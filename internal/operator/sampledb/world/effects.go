package world

import (
	"sync"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/metrics"
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
}

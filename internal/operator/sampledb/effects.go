package sampledb

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

// act is what topics change things with, for one SampleDB.
type act struct {
	*world
	*effects
}

// effects are what topics act with.
type effects struct {
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
	statuses    *freshness.Statuses[v1.SampleDBStatus]
	NoClasses   bool
	*memory
}

// memory is what is remembered of SampleDBs from one reconcile to the next.
type memory struct {
	// giving is held while an agent is given a program: one at a time.
	giving sync.Mutex

	attempts      attempts
	leases        leases
	unanswered    unanswered
	pacedMachines paced
	pacedVain     paced
	leaderless    unanswered
}

package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/serve"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/httppath"
	"toban.dev/internal/protocol"
)

// Annexes are what an agent does without (docs/packages.md, "Core and annexes"). What is nil is not there.
type Annexes struct {
	// Metrics answers Prometheus.
	Metrics func(serve.Measured) http.Handler
	// Breaker breaks this instance, when a FaultDrill orders it.
	Breaker func(Breakable) Breaker
	// Poolers answers the poolers that ask this instance what tells says.
	Poolers func(board *status.Board, tells func() protocol.InstanceTells, log *slog.Logger) serve.Poolers
}

// hold has the poolers hold their clients until release.
func (a *Agent) hold(ctx context.Context) (release func()) {
	if a.api.Poolers == nil {
		return func() {}
	}
	return a.api.Poolers.Hold(ctx)
}

// poolers is what answers poolers, nil for nothing.
func (x *Annexes) poolers(a *Agent) serve.Poolers {
	if x.Poolers == nil {
		return nil
	}
	return x.Poolers(a.status, a.tellsPoolers, a.options.Log)
}

// metrics is what answers Prometheus, nil for nothing.
func (x *Annexes) metrics(a *Agent) http.Handler {
	if x.Metrics == nil {
		return nil
	}
	return x.Metrics(serve.Measured{Server: a.server, Status: a.status, Config: a.configs.get, Log: a.options.Log})
}

// Breaker breaks an instance by order.
type Breaker interface {
	// Do carries an order out.
	Do(order protocol.FaultOrder) error
	// Rest keeps faults from beginning until release, for who makes another program of this process. It never waits.
	Rest() (release func(), err error)
	// Clear removes what a fault of an agent before has left on the volume, End takes back what lasts.
	Clear()
	End()
}

// Breakable is an instance, for who breaks it.
type Breakable struct {
	// Current is the server that runs, nil while none does.
	Current *atomic.Pointer[running.Server]
	// Volume is the folder of the volume.
	Volume string
	// Cluster is the Kubernetes around it, nil where there is none, Store the way to the store of the archive.
	Cluster Cluster
	Store   *httppath.Path
	Config  func() protocol.Config
	// Role is the one that it has now.
	Role func() protocol.Role
	// Die ends this process at once, nil for the usual way.
	Die func()
	Log *slog.Logger
}

// breaker is what breaks the instance by order.
func (x *Annexes) breaker(a *Agent) Breaker {
	if x.Breaker == nil {
		return unbreakable{}
	}
	return x.Breaker(Breakable{
		Current: &a.current, Volume: a.options.Volume, Cluster: a.options.Cluster, Store: a.toStore,
		Config: a.configs.get, Role: func() protocol.Role { return a.status.Get().Role }, Die: a.options.Die,
		Log: a.options.Log,
	})
}

// unbreakable is the Breaker of an agent that has none.
type unbreakable struct{}

func (unbreakable) Do(protocol.FaultOrder) error {
	return errors.New("this agent breaks nothing: it has no part for FaultDrills")
}

func (unbreakable) Rest() (release func(), err error) { return func() {}, nil }
func (unbreakable) Clear()                            {}
func (unbreakable) End()                              {}

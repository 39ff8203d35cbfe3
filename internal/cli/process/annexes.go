package process

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/operator/agents"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/myapp"
	"toban.dev/internal/operator/namespaces"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/order/databaserestore"
	"toban.dev/internal/operator/order/faultdrill"
	"toban.dev/internal/operator/postgresql"
	"toban.dev/internal/operator/secrets"
)

// annexes are the controllers that the core does without: what a SampleDB needs to live, fail over, be backed up and
// restored does not know them. Each goes with its folder and its entry here (hack/house has a test that takes it out).
var annexes = []annex{
	{kinds: "DatabaseRestores", controller: func(p parts) controller {
		return &databaserestore.Reconciler{Base: p.Base, Pods: p.asks}
	}},
	{kinds: "FaultDrills", controller: func(p parts) controller {
		return &faultdrill.Reconciler{Base: p.Base, Breaker: p.asks}
	}},
	{kinds: "PostgreSQLs", controller: func(p parts) controller {
		return &postgresql.Reconciler{
			Client: p.Client, Reader: p.Reader, Databases: p.asks, Secrets: p.follow(), Credentials: p.credentials,
			Settings: p.Settings, Namespaces: p.namespaces, Events: p.Events, Shard: p.Shard, Now: p.Now,
		}
	}},
	{kinds: "MyApps", watched: myapp.Watched, controller: func(p parts) controller {
		return &myapp.Reconciler{
			Client: p.Client, Reader: p.Reader, Secrets: p.follow(), Namespaces: p.namespaces, Events: p.Events,
			Shard: p.Shard, Now: p.Now,
		}
	}},
}

// annex is the controller of a kind, named for people.
type annex struct {
	kinds      string
	controller func(parts) controller
	// watched are the kinds of objects that the cache keeps for it whole, nil for none.
	watched func() []client.Object
}

type controller interface{ Setup(m ctrl.Manager) error }

// parts are what a controller is made of.
type parts struct {
	order.Base
	asks        *agents.HTTPS
	credentials *credentials.Store
	namespaces  namespaces.Choice
	// follow makes a follower of Secrets: each controller takes the events of its own.
	follow func() *secrets.Follower
}

// watchedByAnnexes are the kinds of objects that the cache keeps for annexes whole.
func watchedByAnnexes() (all []client.Object) {
	for _, a := range annexes {
		if a.watched != nil {
			all = append(all, a.watched()...)
		}
	}
	return all
}

// setUpAnnexes adds the controllers of all annexes to a manager.
func setUpAnnexes(m ctrl.Manager, p parts) error {
	for _, a := range annexes {
		if err := a.controller(p).Setup(m); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", a.kinds, err)
		}
	}
	return nil
}

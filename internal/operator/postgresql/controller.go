// Package postgresql brings PostgreSQLs about: a server of its own where there is to be one, the passwords out of the
// users' Secrets, the database with its roles by the primary's agent, and the Secret for applications. What it decides
// is a pure function of what it sees. It must not know how a database is made (internal/postgres/database) nor how an
// object looks (internal/operator/desired).
package postgresql

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/namespaces"
	"toban.dev/internal/operator/secrets"
	"toban.dev/internal/operator/shards"
	"toban.dev/internal/passwords"
	"toban.dev/internal/protocol"
)

// Databases asks the agent of a SampleDB's primary, at a host, to make a database. The cluster is the SampleDB's UID.
type Databases interface {
	Database(ctx context.Context, cluster types.UID, host string, config protocol.Config,
		request protocol.DatabaseRequest) (protocol.DatabaseResult, error)
}

// Reconciler reconciles PostgreSQLs. All fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Databases asks the agents.
	Databases Databases
	// Secrets notices when a Secret with a password changes, where it may.
	Secrets *secrets.Follower
	// Credentials has the keys.
	Credentials *credentials.Store
	// Settings are the operator's.
	Settings desired.Settings
	// Namespaces are where the operator works.
	Namespaces namespaces.Choice
	// Events takes the events.
	Events events.EventRecorder
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time

	statuses   freshness.Statuses[pgv1.PostgreSQLStatus]
	identities freshness.Identities
	known      knownPasswords
}

// Pauses until a PostgreSQL is looked at again when nothing happens before.
const (
	pauseWorking = 2 * time.Second
	pauseStuck   = 20 * time.Second
	pauseLong    = 30 * time.Second // for what has been waited for since long
	pauseResting = 5 * time.Minute  // somebody may have changed something with SQL
	// firstLook and lastLook are when a Secret that was missing is looked for again.
	firstLook = 2 * time.Second
	lastLook  = 30 * time.Second
)

// scope is what one reconcile knows.
type scope struct {
	pg   *pgv1.PostgreSQL
	now  time.Time
	seen observed
	// unwatched says that the server is in a namespace in which the operator does not work.
	unwatched bool
	// found is what is known to be in the Secrets with passwords. Unread is why they could not be read.
	found  map[string]passwords.Found
	unread Decision
	// secretInTheWay says that the Secret could not be created, because one of the name is there.
	secretInTheWay bool
	// revision is which content of the Secret was written last.
	revision string
	// connection is that of what an application has from its start.
	connection string
}

// answer is what came of asking the primary's agent.
type answer struct {
	result protocol.DatabaseResult
	err    error
}

// Reconcile brings one PostgreSQL nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pg := &pgv1.PostgreSQL{}
	if err := r.Client.Get(ctx, request.NamespacedName, pg); err != nil {
		if apierrors.IsNotFound(err) {
			r.Secrets.Follow(request.NamespacedName)
			r.forget(r.identities.Leave(request.NamespacedName))
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the PostgreSQL: %w", err)
	}
	if server := serverKey(pg); !r.Shard.Has(server.Namespace, server.Name) {
		return reconcile.Result{}, nil
	}
	r.forget(r.identities.Meet(pg))
	pg.Status = r.statuses.Latest(pg, pg.Status)
	s := &scope{pg: pg, now: r.Now(), revision: pg.Status.SecretRevision,
		connection: pg.Status.ConnectionRevision}
	if pg.DeletionTimestamp != nil {
		return r.finish(ctx, s)
	}
	d, err := r.run(ctx, s)
	var problem *apply.Problem
	if errors.As(err, &problem) {
		d, err = unwritten(problem), nil
	}
	if err != nil {
		if apierrors.IsConflict(err) {
			return reconcile.Result{RequeueAfter: time.Second}, nil
		}
		return reconcile.Result{}, err
	}
	if err := r.report(ctx, s, d); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: d.pause(s)}, nil
}

// forget drops what is kept of a PostgreSQL that is gone, "" for none.
func (r *Reconciler) forget(uid types.UID) {
	if uid != "" {
		r.known.set(uid, nil)
		r.statuses.Forget(uid)
	}
}

// run does what there is to do, up to what has to be waited for, and says how it is then.
func (r *Reconciler) run(ctx context.Context, s *scope) (Decision, error) {
	if err := r.claimFinalizer(ctx, s); err != nil {
		return Decision{}, err
	}
	if s.pg.Spec.Server == nil {
		if err := r.applyServer(ctx, s); err != nil {
			return Decision{}, err
		}
	}
	if err := r.observe(ctx, s); err != nil {
		return Decision{}, err
	}
	if err := r.applyPasswords(ctx, s); err != nil {
		return Decision{}, err
	}
	v := s.view()
	if d := decide(v); !d.Act {
		return d, r.labelPods(ctx, s, false)
	}
	d := judge(v, r.ask(ctx, s, false))
	if d.Reason == pgv1.ReasonReady {
		if err := r.applySecret(ctx, s); err != nil {
			return Decision{}, err
		}
		switch {
		case s.secretInTheWay:
			d = secretInTheWay(s.pg, s.now)
		case !s.seen.reachable:
			d = wait(pgv1.ReasonServerNotReady,
				"the database is there, and the primary's Pod is not ready yet: no Service leads to it")
		}
	}
	return d, r.labelPods(ctx, s, d.Reason == pgv1.ReasonReady)
}

func (r *Reconciler) writer() apply.Writer { return apply.Writer{Client: r.Client, Reader: r.Reader} }

func ownerOf(pg *pgv1.PostgreSQL) apply.Owner { return apply.Owner{Object: pg, Kind: "PostgreSQL"} }

// claimFinalizer keeps a PostgreSQL on somebody else's server until what it has there is as its deletionPolicy says. A
// server of its own has a finalizer of its own.
func (r *Reconciler) claimFinalizer(ctx context.Context, s *scope) error {
	if s.pg.Spec.Server == nil {
		return nil
	}
	return r.writer().Hold(ctx, s.pg, nil)
}

// serverKey is where the SampleDB of a PostgreSQL is.
func serverKey(pg *pgv1.PostgreSQL) types.NamespacedName {
	server := desired.ServerOf(pg)
	if server.Namespace == "" {
		server.Namespace = pg.Namespace
	}
	return types.NamespacedName{Namespace: server.Namespace, Name: server.Name}
}

// reference says which SampleDB it is, for the status.
func reference(db *v1.SampleDB, pg *pgv1.PostgreSQL) *pgv1.ServerReference {
	if db == nil {
		return nil
	}
	server := desired.ServerOf(pg)
	return &server
}

// Package myapp makes MyApps real: it observes what there is, decides whether an update may go on, makes what
// is missing, puts back what somebody has changed, and reports what it saw. What it decides are pure
// functions of what it sees. It must not know how an object looks (that is internal/operator/desired/myapp's), nor how
// a database is run or backed up.
package myapp

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/namespaces"
	"toban.dev/internal/operator/secrets"
	"toban.dev/internal/operator/shards"
)

// Reconciler reconciles MyApps. The fields must be set.
type Reconciler struct {
	// Client reads from the cache, which has our own objects only, and writes.
	Client client.Client
	// Reader reads past the cache.
	Reader client.Reader
	// Secrets notices when a Secret of the configuration changes, where it may.
	Secrets *secrets.Follower
	// Namespaces are where the operator works.
	Namespaces namespaces.Choice
	// Events takes the events.
	Events events.EventRecorder
	// Shard says which databases are this operator's.
	Shard shards.Shard
	// Now is the clock.
	Now func() time.Time

	statuses   freshness.Statuses[v1.MyAppStatus]
	identities freshness.Identities
}

// Pauses until a MyApp is looked at again when nothing happens before. Nearly all changes are watched.
const (
	pauseConflict = 100 * time.Millisecond
	pauseGone     = time.Second
	pauseUser     = 30 * time.Second // what is in the way is in no cache
)

// scope is what the steps of one reconcile share.
type scope struct {
	// app is the MyApp as the cache has it, but with its latest status. Nobody changes it.
	app *v1.MyApp
	now time.Time
	// seen is what observe has read.
	seen observed

	// job is the Job of the migration as it would be made now, nil where there is no migration; view is what the
	// decision depends on, and decision is what is done.
	job      *batchv1.Job
	view     view
	decision Decision
	// deployed is what the Deployment is made from, nil where nothing has been deployed; wanted is how it should look.
	deployed *v1.Deployed
	wanted   *appsv1.Deployment
	// leader is the Pod that leads.
	leader string

	// problem is the first object that could not be written, failure an error that trying again may mend.
	problem *apply.Problem
	failure error
	// events are to be emitted when the status is written.
	events []event
}

// step is a part of a reconcile. It returns a problem (apply.Problem) where the user has to act, and any other
// error where trying again may help.
type step struct {
	name string
	run  func(context.Context, *scope) error
}

// steps are in their order: who leads comes first, because it is the one thing that is in a hurry.
func (r *Reconciler) steps() []step {
	return []step{
		{"leader", r.applyLeader},
		{"network", r.applyNetwork},
		{"database policy", r.applyDatabasePolicy},
		{"update", r.applyUpdate},
		{"deployment", r.applyDeployment},
		{"budget", r.applyBudget},
		{"autoscaler", r.applyAutoscaler},
		{"jobs", r.removeJobs},
	}
}

// Reconcile brings one MyApp nearer to its spec. It has no finalizer: all that belongs to it has it as its owner.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.Shard.Has(request.Namespace, request.Name) {
		return reconcile.Result{}, nil
	}
	app := &v1.MyApp{}
	if err := r.Client.Get(ctx, request.NamespacedName, app); err != nil {
		if apierrors.IsNotFound(err) {
			r.Secrets.Follow(request.NamespacedName)
			r.statuses.Forget(r.identities.Leave(request.NamespacedName))
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read the MyApp: %w", err)
	}
	r.statuses.Forget(r.identities.Meet(app))
	app.Status = r.statuses.Latest(app, app.Status)
	s := &scope{app: app, now: r.Now(), deployed: app.Status.Deployed, leader: app.Status.Leader}
	if app.DeletionTimestamp == nil {
		s.failure = r.run(ctx, s)
	}
	err := s.failure
	if apierrors.IsConflict(err) {
		s.failure = nil // what was seen was out of date, which is nobody's fault
	}
	if reported := r.report(ctx, s); reported != nil {
		err = errors.Join(err, reported)
	}
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: pauseConflict}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.pause()}, nil
}

// run observes, decides and does all steps. One that meets a problem that the user can mend does not keep the others
// from being done: the first such problem is kept for the status.
func (r *Reconciler) run(ctx context.Context, s *scope) error {
	if err := r.observe(ctx, s); err != nil {
		return err
	}
	s.view = s.buildView()
	s.decision = decide(s.view)
	for _, step := range r.steps() {
		err := step.run(ctx, s)
		var problem *apply.Problem
		if errors.As(err, &problem) {
			if s.problem == nil {
				s.problem = problem
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// pause is how long until the MyApp is looked at again, 0 when only a change brings it back.
func (s *scope) pause() time.Duration {
	switch {
	case s.problem == nil:
		return 0
	case s.problem.Cause == apply.Waiting:
		return pauseGone
	}
	return pauseUser
}

// owner is the MyApp as the owner of its objects.
func (s *scope) owner() apply.Owner { return apply.Owner{Object: s.app, Kind: "MyApp"} }

func (r *Reconciler) writer() apply.Writer { return apply.Writer{Client: r.Client, Reader: r.Reader} }

package myapp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/myapp/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/jobs"
)

// applyNetwork writes how the application is reached.
func (r *Reconciler) applyNetwork(ctx context.Context, s *scope) error {
	if err := r.writer().Apply(ctx, s.owner(), myapp.Service(s.app)); err != nil {
		return err
	}
	if want := myapp.Ingress(s.app); want != nil {
		return r.writer().Apply(ctx, s.owner(), want)
	}
	return r.writer().Remove(ctx, s.owner(), &networkingv1.Ingress{ObjectMeta: s.named(naming.App(s.app.Name))})
}

// applyDatabasePolicy lets the Pods reach the database before there are any, or removes that where no server is wanted.
func (r *Reconciler) applyDatabasePolicy(ctx context.Context, s *scope) error {
	switch seen := s.seen.servers; {
	case !seen.known:
		return nil
	case len(seen.names) > 0:
		return r.writer().Apply(ctx, s.owner(), myapp.DatabasePolicy(s.app, seen.names))
	}
	return r.writer().Remove(ctx, s.owner(),
		&networkingv1.NetworkPolicy{ObjectMeta: s.named(naming.DatabasePolicy(s.app.Name))})
}

// applyBudget writes the budget, or removes it where none is wanted.
func (r *Reconciler) applyBudget(ctx context.Context, s *scope) error {
	if want := myapp.Budget(s.app); want != nil {
		return r.writer().Apply(ctx, s.owner(), want)
	}
	return r.writer().Remove(ctx, s.owner(), &policyv1.PodDisruptionBudget{ObjectMeta: s.named(naming.App(s.app.Name))})
}

// applyAutoscaler writes the autoscaler, or removes it where none is wanted.
func (r *Reconciler) applyAutoscaler(ctx context.Context, s *scope) error {
	if want := myapp.Autoscaler(s.app); want != nil {
		return r.writer().Apply(ctx, s.owner(), want)
	}
	return r.writer().Remove(ctx, s.owner(),
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: s.named(naming.App(s.app.Name))})
}

// named is the metadata of an object of the MyApp's namespace that is only pointed at.
func (s *scope) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.app.Namespace, Name: name}
}

// applyUpdate creates what was decided. Each is created once: a DatabaseBackup and a Job say what
// was asked for at a time.
func (r *Reconciler) applyUpdate(ctx context.Context, s *scope) error {
	switch s.decision.Action {
	case ActionBackup:
		backup := myapp.MigrationBackup(s.app, s.job, s.seen.database.sampleDB)
		err := r.Client.Create(ctx, backup, client.FieldOwner(naming.FieldOwner))
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache has it soon
		}
		if err != nil {
			return apply.RefusedBy(err, "create", "DatabaseBackup", backup.Name)
		}
		s.addEvent(eventBackingUp, fmt.Sprintf("DatabaseBackup %s before the migration to %s",
			backup.Name, s.app.Spec.Image))
	case ActionMigrate:
		if err := r.writer().Create(ctx, s.owner(), s.job.DeepCopy()); err != nil {
			return err
		}
		s.addEvent(eventMigrating, fmt.Sprintf("Job %s migrates the schema to %s", s.job.Name, s.app.Spec.Image))
	case ActionHold, ActionRoll:
	}
	return nil
}

// applyDeployment writes the Deployment, of the spec or, while an update is held back, of what was before. Where that
// is not known, what is there is left as it is.
func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	next := s.next()
	// The first Pods would be replaced as soon as the Secrets are known.
	if next == nil || s.seen.deployment == nil && !s.seen.settled {
		return nil
	}
	release := myapp.Release{
		Spec: next.Spec, Config: s.digest(next.Spec), Secrets: s.secrets(next.Spec), Connection: s.connection(),
	}
	want := myapp.Deployment(s.app, release, s.replicas())
	if s.app.Spec.Autoscaling != nil && s.seen.deployment != nil {
		apply.IfUnchanged(want, s.seen.deployment)
	}
	s.wanted = want
	if err := r.writer().ApplyWhole(ctx, s.owner(), want); err != nil {
		return err
	}
	if s.revision() != next.Revision {
		s.addEvent(eventRolling, "the Pods are replaced by Pods with "+next.Spec.Image)
	}
	s.deployed = next
	return nil
}

// next is what the Deployment is to be made from, nil where nothing is to be deployed.
func (s *scope) next() *v1.Deployed {
	if s.decision.Action != ActionRoll {
		return s.deployed
	}
	next := &v1.Deployed{Revision: s.revision(), Spec: myapp.PodPart(s.app.Spec)}
	if s.deployed == nil || myapp.Version(s.deployed.Spec) != myapp.Version(s.app.Spec) {
		next.Revision++
	}
	return next
}

// replicas is how many Pods are wanted.
func (s *scope) replicas() int32 {
	var present *int32
	if s.seen.deployment != nil {
		present = s.seen.deployment.Spec.Replicas
	}
	return myapp.Replicas(s.app.Spec, present)
}

// connection tells one content of the database's Secret from another. While that is not known it stays as it was.
func (s *scope) connection() string {
	if s.app.Spec.Database == nil {
		return ""
	}
	if known := s.seen.database.secret; known != "" {
		return known
	}
	return s.annotated(naming.AnnotationConnection)
}

// secrets tells one content of the Secrets of a spec from another, as far as they may be watched, and has the text that
// somebody has put on the MyApp for the others. While that is being found out it stays as it was.
func (s *scope) secrets(spec v1.MyAppSpec) string {
	if !s.seen.settled && s.seen.deployment != nil {
		return s.annotated(naming.AnnotationSecrets)
	}
	parts := []string{s.app.Annotations[naming.AnnotationSecrets]}
	for _, name := range spec.Config.Secrets {
		if version := s.seen.secrets[string(name)]; version != "" {
			parts = append(parts, version)
		}
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// removeJobs deletes the Jobs of migrations that are not wanted any more, also while they run.
func (r *Reconciler) removeJobs(ctx context.Context, s *scope) error {
	runner, gone := jobs.Runner{Client: r.Client, Reader: r.Reader}, obsolete(s.view)
	for i := range s.seen.jobs {
		if job := &s.seen.jobs[i]; slices.Contains(gone, job.Name) {
			if err := runner.Remove(ctx, job); err != nil {
				return err
			}
		}
	}
	return nil
}

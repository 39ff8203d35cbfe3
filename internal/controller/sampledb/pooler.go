package sampledb

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
)

// poolerWanted says that the spec has a pooler.
func (s *scope) poolerWanted() bool { return s.db.Spec.Pooler != nil }

// poolSecretWritten says that NAME-pool is known to have the certificate that the poolers are to show.
func (s *scope) poolSecretWritten() bool {
	return !s.poolerWanted() ||
		s.pooler.Secret == desired.PoolRevision(s.db, s.authority.Issuer).Name
}

// secretsWait says that NAME-app or NAME-pool is not as it should be. Nobody tells when the former one has gone, and
// the next can be created.
func (s *scope) secretsWait() bool {
	return !s.poolSecretWritten() || desired.Initialises(s.db) && !s.appWritten()
}

// createPoolSecret creates NAME-pool with a certificate of the authority that issues them, and says whether one was
// there. A former one goes with its revision.
func (r *Reconciler) createPoolSecret(ctx context.Context, s *scope) (there bool, err error) {
	all, err := r.revisions(ctx, s, naming.Pool(s.db.Name))
	if err != nil {
		return false, err
	}
	authority, err := r.Credentials.Authority(s.db, s.authority.Issuer)
	if err != nil {
		return false, fmt.Errorf("make the authority: %w", err)
	}
	leaf, err := authority.IssueLasting(naming.IdentityPooler, desired.PoolNames(s.db), s.now)
	if err != nil {
		return false, err
	}
	want := desired.PoolRevision(s.db, s.authority.Issuer)
	revision, err := r.keepRevision(ctx, s, naming.Pool(s.db.Name), all, want)
	if err != nil {
		return false, err
	}
	secret := desired.PoolSecret(s.db, revision, leaf.CertPEM, leaf.KeyPEM)
	there, err = r.createSecret(ctx, s, revision, secret, s.poolSecretWritten())
	if err == nil && !there {
		s.pooler.Secret = want.Name
	}
	return there, err
}

// observePooler takes over what is on record, and looks how the poolers are.
func (r *Reconciler) observePooler(ctx context.Context, s *scope) error {
	if known := s.db.Status.Pooler; known != nil {
		s.pooler = *known.DeepCopy()
	}
	deployment, err := find(ctx, r.Client, s.db, naming.Pool(s.db.Name), &appsv1.Deployment{})
	if err != nil {
		return err
	}
	if deployment != nil && ours(deployment, s.db) {
		s.seen.pooler = deployment
	}
	return nil
}

// applyPooler makes, changes and removes the poolers. What keeps it from that is a matter of PoolerReady alone.
func (r *Reconciler) applyPooler(ctx context.Context, s *scope) error {
	if !s.poolerWanted() {
		return r.removePooler(ctx, s)
	}
	err := r.keepPooler(ctx, s)
	var found *problem
	if errors.As(err, &found) {
		s.poolerProblem = found
		return nil
	}
	return err
}

func (r *Reconciler) keepPooler(ctx context.Context, s *scope) error {
	settings, err := desired.PoolConfigMap(s.db, s.config)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{
		settings, desired.PoolService(s.db), desired.PoolPolicy(s.db), desired.PoolBudget(s.db),
		desired.PoolDeployment(s.db, r.Settings, s.stop.Closed()),
	} {
		if err := r.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	return nil
}

// removePooler removes all that there is of poolers, but their ConfigMap: the operator may delete none. That goes with
// the SampleDB.
func (r *Reconciler) removePooler(ctx context.Context, s *scope) error {
	if s.seen.pooler == nil && s.pooler.Secret == "" {
		return nil
	}
	for _, object := range []client.Object{
		&corev1.Service{}, &appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{},
	} {
		if err := r.removeOwn(ctx, s, naming.Pool(s.db.Name), object); err != nil {
			return err
		}
	}
	all, err := r.revisions(ctx, s, naming.Pool(s.db.Name))
	if err != nil {
		return err
	}
	for i := range all {
		if err := r.deleteRevision(ctx, &all[i]); err != nil {
			return err
		}
	}
	s.pooler.Secret = ""
	return nil
}

// poolerStatus is what the status says of the poolers, nil where there is nothing to say.
func (s *scope) poolerStatus() *v1.PoolerStatus {
	out := s.pooler
	out.Ready = 0
	if s.seen.pooler != nil {
		out.Ready = s.seen.pooler.Status.ReadyReplicas
	}
	if out == (v1.PoolerStatus{}) {
		return nil
	}
	return &out
}

// poolerReady is the condition PoolerReady, none where no pooler is wanted.
func (s *scope) poolerReady() verdict {
	switch {
	case !s.poolerWanted():
		return verdict{}
	case s.poolerProblem != nil:
		return no(s.poolerProblem.reason, s.poolerProblem.message)
	case s.stop.Closed():
		return no(v1.ReasonStopped, "the database is stopped: its poolers are made anew when it starts")
	}
	wanted, ready := s.db.Spec.Pooler.Instances, int32(0)
	if d := s.seen.pooler; d != nil {
		is := d.Status
		ready = is.ReadyReplicas
		if is.ObservedGeneration == d.Generation && is.UpdatedReplicas == wanted && is.Replicas == wanted &&
			ready == wanted {
			return yes(v1.ReasonPoolerServes, fmt.Sprintf("%d of %d Pods take clients", ready, wanted))
		}
	}
	return no(v1.ReasonPoolerComing, fmt.Sprintf("%d of %d Pods take clients; some are being made or replaced, or are "+
		"not ready", ready, wanted))
}

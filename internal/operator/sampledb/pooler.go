package sampledb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired"
)

// frontTopic makes the poolers.
type frontTopic struct {
	frontBase
	// poolerProblem is what keeps them from being made.
	poolerProblem *problem
}

// poolerWanted says that the spec has a pooler, readPoolWanted that it has one for clients that only read.
func (s *secretFacts) poolerWanted() bool { return s.db.Spec.Pooler != nil }

func (s *secretFacts) readPoolWanted() bool {
	return s.poolerWanted() && s.db.Spec.Pooler.ReadOnly != nil
}

// poolSecretWritten says that NAME-pool is known to have the certificate that the poolers are to show.
func (s *secretFacts) poolSecretWritten() bool {
	return !s.poolerWanted() ||
		s.pooler.Secret == desired.PoolRevision(s.db, s.authority.Issuer).Name
}

// secretsWait says that NAME-app or NAME-pool is not as it should be. Nobody tells when the former one has gone, and
// the next can be created.
func (s *frontTopic) secretsWait() bool {
	return !s.poolSecretWritten() || desired.Initialises(s.db) && !s.appWritten()
}

// createPoolSecret creates NAME-pool with a certificate of the authority that issues them, and says whether one was
// there. A former one goes with its revision.
func (s *frontTopic) createPoolSecret(ctx context.Context) (there bool, err error) {
	all, err := s.revisions(ctx, naming.Pool(s.db.Name))
	if err != nil {
		return false, err
	}
	authority, err := s.Credentials.Authority(s.db, s.authority.Issuer)
	if err != nil {
		return false, fmt.Errorf("make the authority: %w", err)
	}
	leaf, err := authority.IssueLasting(naming.IdentityPooler, desired.PoolNames(s.db), s.now)
	if err != nil {
		return false, err
	}
	want := desired.PoolRevision(s.db, s.authority.Issuer)
	revision, err := s.keepRevision(ctx, naming.Pool(s.db.Name), all, want)
	if err != nil {
		return false, err
	}
	secret := desired.PoolSecret(s.db, revision, leaf.CertPEM, leaf.KeyPEM)
	there, err = s.createSecret(ctx, revision, secret, s.poolSecretWritten())
	if err == nil && !there {
		s.pooler.Secret = want.Name
	}
	return there, err
}

// observePooler takes over what is on record, and looks how the poolers are.
func (s *frontTopic) observePooler(ctx context.Context) error {
	if known := s.db.Status.Pooler; known != nil {
		s.pooler = *known.DeepCopy()
	}
	s.seen.poolers = map[string]*appsv1.Deployment{}
	for _, name := range poolNames(s.db) {
		deployment, err := find(ctx, s.Client, s.db, name, &appsv1.Deployment{})
		if err != nil {
			return err
		}
		if deployment != nil && ours(deployment, s.db) {
			s.seen.poolers[name] = deployment
		}
	}
	return nil
}

// poolNames are those that the pools of a SampleDB may have.
func poolNames(db *v1.SampleDB) []string {
	return []string{naming.Pool(db.Name), naming.ReadPool(db.Name)}
}

// applyPooler makes, changes and removes the poolers. What keeps it from that is a matter of PoolerReady alone.
func (s *frontTopic) applyPooler(ctx context.Context) error {
	err := s.keepPools(ctx)
	var found *problem
	if errors.As(err, &found) {
		s.poolerProblem = found
		return nil
	}
	return err
}

// keepPools has each pool that the spec wants, and no other. One that can't be made keeps no other from it.
func (s *frontTopic) keepPools(ctx context.Context) error {
	var failed error
	wanted := map[string]bool{}
	for _, pool := range desired.Pools(s.db) {
		wanted[pool.Name] = true
		failed = errors.Join(failed, s.keepPool(ctx, pool))
	}
	for _, name := range poolNames(s.db) {
		if !wanted[name] {
			failed = errors.Join(failed, s.removePool(ctx, name))
		}
	}
	if failed == nil && !s.poolerWanted() {
		return s.removePoolSecret(ctx)
	}
	return failed
}

func (s *frontTopic) keepPool(ctx context.Context, pool desired.Pool) error {
	have, replicas := s.seen.poolers[pool.Name], 0
	if have != nil && have.Spec.Replicas != nil {
		replicas = int(*have.Spec.Replicas)
	}
	told, err := pool.ConfigMap(s.db, s.config, s.readerAddresses())
	if err != nil {
		return err
	}
	deployment := pool.Deployment(s.db, s.Settings, pool.Replicas(replicas, s.stop.Closed() && !s.stop.Sleeps()))
	if have != nil && pool.Most > pool.Least {
		apply.IfUnchanged(deployment, have)
	}
	for _, object := range []client.Object{
		told, pool.NetworkService(s.db), pool.Policy(s.db, s.Settings), pool.Budget(s.db), deployment,
	} {
		if err := s.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	if scaler := pool.Autoscaler(s.db); scaler != nil {
		return s.apply(ctx, s.db, scaler)
	}
	return s.removeOwn(ctx, pool.Name, &autoscalingv2.HorizontalPodAutoscaler{})
}

// readerAddresses are where the readers are.
func (s *frontTopic) readerAddresses() []string {
	var out []string
	for _, ordinal := range slices.Sorted(maps.Keys(s.seen.readers.pods)) {
		if pod := s.seen.readers.pods[ordinal]; pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			out = append(out, pod.Status.PodIP)
		}
	}
	return out
}

// removePool removes all that there is of a pool, but its ConfigMap: the operator may delete none. That goes with the
// SampleDB.
func (s *frontTopic) removePool(ctx context.Context, name string) error {
	if s.seen.poolers[name] == nil {
		return nil
	}
	for _, object := range []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{},
		&networkingv1.NetworkPolicy{}, &appsv1.Deployment{}, // the last one is how the others are found
	} {
		if err := s.removeOwn(ctx, name, object); err != nil {
			return err
		}
	}
	return nil
}

// removePoolSecret removes NAME-pool, which goes with its revision.
func (s *frontTopic) removePoolSecret(ctx context.Context) error {
	if s.pooler.Secret == "" {
		return nil
	}
	all, err := s.revisions(ctx, naming.Pool(s.db.Name))
	if err != nil {
		return err
	}
	for i := range all {
		if err := s.deleteRevision(ctx, &all[i]); err != nil {
			return err
		}
	}
	s.pooler.Secret = ""
	return nil
}

// poolerStatus is what the status says of the poolers, nil where there is nothing to say.
func (s *frontTopic) poolerStatus() *v1.PoolerStatus {
	out := s.pooler
	out.Ready, out.ReadOnlyReady = s.poolReady(naming.Pool(s.db.Name)), s.poolReady(naming.ReadPool(s.db.Name))
	if out == (v1.PoolerStatus{}) {
		return nil
	}
	return &out
}

// poolReady is how many Pods of a pool take clients.
func (s *frontTopic) poolReady(name string) int32 {
	if d := s.seen.poolers[name]; d != nil {
		return d.Status.ReadyReplicas
	}
	return 0
}

// poolerReady is the condition PoolerReady, none where no pooler is wanted.
func (s *frontTopic) poolerReady() verdict {
	switch {
	case !s.poolerWanted():
		return verdict{}
	case s.poolerProblem != nil:
		return no(s.poolerProblem.reason, s.poolerProblem.message)
	case s.stop.Closed() && !s.stop.Sleeps():
		return no(v1.ReasonStopped, "the database is stopped: its poolers are made anew when it starts")
	}
	var parts []string
	serve := true
	for _, pool := range desired.Pools(s.db) {
		d := s.seen.poolers[pool.Name]
		wanted := int32(pool.Least) //nolint:gosec // twenty at most
		if d != nil && d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		part := fmt.Sprintf("%d of %d Pods take clients", s.poolReady(pool.Name), wanted)
		if pool.Reads {
			part = fmt.Sprintf("%d of %d take those that only read", s.poolReady(pool.Name), wanted)
		}
		parts, serve = append(parts, part), serve && rolledOut(d)
	}
	message := strings.Join(parts, ", ")
	if serve {
		return yes(v1.ReasonPoolerServes, message)
	}
	return no(v1.ReasonPoolerComing, message+"; some are being made or replaced, or are not ready")
}

// rolledOut says that a Deployment has as many Pods as it is asked for, all of them ready and of its last revision.
func rolledOut(d *appsv1.Deployment) bool {
	if d == nil || d.Spec.Replicas == nil || d.Status.ObservedGeneration != d.Generation {
		return false
	}
	wanted, is := *d.Spec.Replicas, d.Status
	return is.UpdatedReplicas == wanted && is.Replicas == wanted && is.ReadyReplicas == wanted
}

package front

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
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
)

// frontTopic makes the poolers.
type frontTopic struct {
	*world.Act
	// poolerProblem is what keeps them from being made.
	poolerProblem *world.Problem
}

// SecretsWait says that NAME-app or NAME-pool is not as it should be. Nobody tells when the former one has gone, and
// the next can be created.
func (s *frontTopic) SecretsWait() bool {
	return !s.PoolSecretWritten() || desired.Initialises(s.DB) && !s.AppWritten()
}

// CreatePoolSecret creates NAME-pool with a certificate of the authority that issues them, and says whether one was
// there. A former one goes with its revision.
func (s *frontTopic) CreatePoolSecret(ctx context.Context) (there bool, err error) {
	all, err := s.Revisions(ctx, naming.Pool(s.DB.Name))
	if err != nil {
		return false, err
	}
	authority, err := s.Credentials.Authority(s.DB, s.Authority.Issuer)
	if err != nil {
		return false, fmt.Errorf("make the authority: %w", err)
	}
	leaf, err := authority.IssueLasting(naming.IdentityPooler, desired.PoolNames(s.DB), s.Now)
	if err != nil {
		return false, err
	}
	want := desired.PoolRevision(s.DB, s.Authority.Issuer)
	revision, err := s.KeepRevision(ctx, naming.Pool(s.DB.Name), all, want)
	if err != nil {
		return false, err
	}
	secret := desired.PoolSecret(s.DB, revision, leaf.CertPEM, leaf.KeyPEM)
	there, err = s.CreateSecret(ctx, revision, secret, s.PoolSecretWritten())
	if err == nil && !there {
		s.Pooler.Secret = want.Name
	}
	return there, err
}

// ObservePooler takes over what is on record, and looks how the poolers are.
func (s *frontTopic) ObservePooler(ctx context.Context) error {
	if known := s.DB.Status.Pooler; known != nil {
		s.Pooler = *known.DeepCopy()
	}
	s.Seen.Poolers = map[string]*appsv1.Deployment{}
	for _, name := range poolNames(s.DB) {
		deployment, err := world.Find(ctx, s.Client, s.DB, name, &appsv1.Deployment{})
		if err != nil {
			return err
		}
		if deployment != nil && world.Ours(deployment, s.DB) {
			s.Seen.Poolers[name] = deployment
		}
	}
	return nil
}

// poolNames are those that the pools of a SampleDB may have.
func poolNames(db *v1.SampleDB) []string {
	return []string{naming.Pool(db.Name), naming.ReadPool(db.Name)}
}

// ApplyPooler makes, changes and removes the poolers. What keeps it from that is a matter of PoolerReady alone.
func (s *frontTopic) ApplyPooler(ctx context.Context) error {
	err := s.keepPools(ctx)
	var found *world.Problem
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
	for _, pool := range desired.Pools(s.DB) {
		wanted[pool.Name] = true
		failed = errors.Join(failed, s.keepPool(ctx, pool))
	}
	for _, name := range poolNames(s.DB) {
		if !wanted[name] {
			failed = errors.Join(failed, s.removePool(ctx, name))
		}
	}
	if failed == nil && !s.PoolerWanted() {
		return s.removePoolSecret(ctx)
	}
	return failed
}

func (s *frontTopic) keepPool(ctx context.Context, pool desired.Pool) error {
	have, replicas := s.Seen.Poolers[pool.Name], 0
	if have != nil && have.Spec.Replicas != nil {
		replicas = int(*have.Spec.Replicas)
	}
	told, err := pool.ConfigMap(s.DB, s.Config, s.readerAddresses())
	if err != nil {
		return err
	}
	deployment := pool.Deployment(s.DB, s.Settings, pool.Replicas(replicas, s.Stop.Closed() && !s.Stop.Sleeps()))
	if have != nil && pool.Most > pool.Least {
		apply.IfUnchanged(deployment, have)
	}
	for _, object := range []client.Object{
		told, pool.NetworkService(s.DB), pool.Policy(s.DB, s.Settings), pool.Budget(s.DB), deployment,
	} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	if scaler := pool.Autoscaler(s.DB); scaler != nil {
		return s.Apply(ctx, s.DB, scaler)
	}
	return s.RemoveOwn(ctx, pool.Name, &autoscalingv2.HorizontalPodAutoscaler{})
}

// readerAddresses are where the readers are.
func (s *frontTopic) readerAddresses() []string {
	var out []string
	for _, ordinal := range slices.Sorted(maps.Keys(s.Seen.Readers.Pods)) {
		if pod := s.Seen.Readers.Pods[ordinal]; pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			out = append(out, pod.Status.PodIP)
		}
	}
	return out
}

// removePool removes all that there is of a pool, but its ConfigMap: the operator may delete none. That goes with the
// SampleDB.
func (s *frontTopic) removePool(ctx context.Context, name string) error {
	if s.Seen.Poolers[name] == nil {
		return nil
	}
	for _, object := range []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{}, &corev1.Service{}, &policyv1.PodDisruptionBudget{},
		&networkingv1.NetworkPolicy{}, &appsv1.Deployment{}, // the last one is how the others are found
	} {
		if err := s.RemoveOwn(ctx, name, object); err != nil {
			return err
		}
	}
	return nil
}

// removePoolSecret removes NAME-pool, which goes with its revision.
func (s *frontTopic) removePoolSecret(ctx context.Context) error {
	if s.Pooler.Secret == "" {
		return nil
	}
	all, err := s.Revisions(ctx, naming.Pool(s.DB.Name))
	if err != nil {
		return err
	}
	for i := range all {
		if err := s.DeleteRevision(ctx, &all[i]); err != nil {
			return err
		}
	}
	s.Pooler.Secret = ""
	return nil
}

// PoolerStatus is what the status says of the poolers, nil where there is nothing to say.
func (s *frontTopic) PoolerStatus() *v1.PoolerStatus {
	out := s.Pooler
	out.Ready, out.ReadOnlyReady = s.poolReady(naming.Pool(s.DB.Name)), s.poolReady(naming.ReadPool(s.DB.Name))
	if out == (v1.PoolerStatus{}) {
		return nil
	}
	return &out
}

// poolReady is how many Pods of a pool take clients.
func (s *frontTopic) poolReady(name string) int32 {
	if d := s.Seen.Poolers[name]; d != nil {
		return d.Status.ReadyReplicas
	}
	return 0
}

// PoolerReady is the condition PoolerReady, none where no pooler is wanted.
func (s *frontTopic) PoolerReady() world.Verdict {
	switch {
	case !s.PoolerWanted():
		return world.Verdict{}
	case s.poolerProblem != nil:
		return world.No(s.poolerProblem.Reason, s.poolerProblem.Message)
	case s.Stop.Closed() && !s.Stop.Sleeps():
		return world.No(v1.ReasonStopped, "the database is stopped: its poolers are made anew when it starts")
	}
	var parts []string
	serve := true
	for _, pool := range desired.Pools(s.DB) {
		d := s.Seen.Poolers[pool.Name]
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
		return world.Yes(v1.ReasonPoolerServes, message)
	}
	if t := s.trouble(); t != nil {
		return world.No(t.Reason, message+"; "+t.Message)
	}
	return world.No(v1.ReasonPoolerComing, message+"; some are being made or replaced, or are not ready")
}

// trouble is what keeps the poolers' Pods from being made, or from running, nil when nothing is known to.
func (s *frontTopic) trouble() *world.Verdict {
	for _, pool := range desired.Pools(s.DB) {
		if t := refused(s.Seen.Poolers[pool.Name]); t != nil {
			return t
		}
	}
	for i := range s.Seen.PoolerPods {
		pod := &s.Seen.PoolerPods[i]
		if pod.DeletionTimestamp != nil || pods.Ready(pod) {
			continue
		}
		if t := world.PodTrouble(pod); t != nil {
			return t
		}
	}
	return nil
}

// refused is what keeps the Pods of a Deployment from being made, nil when nothing is known to.
func refused(d *appsv1.Deployment) *world.Verdict {
	if d == nil {
		return nil
	}
	if d.Spec.Paused {
		return &world.Verdict{Reason: v1.ReasonPoolerComing, Message: "somebody has paused the Deployment: " +
			"kubectl rollout resume deployment/" + d.Name}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &world.Verdict{Reason: v1.ReasonPodRefused, Message: "the cluster refuses a Pod: " + c.Message}
		}
	}
	return nil
}

// rolledOut says that a Deployment has as many Pods as it is asked for, all of them ready and of its last revision.
func rolledOut(d *appsv1.Deployment) bool {
	if d == nil || d.Spec.Replicas == nil || d.Status.ObservedGeneration != d.Generation {
		return false
	}
	wanted, is := *d.Spec.Replicas, d.Status
	return is.UpdatedReplicas == wanted && is.Replicas == wanted && is.ReadyReplicas == wanted
}

package sampledb

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// applyAccess writes what the instances run as and may do.
func (s *scope) applyAccess(ctx context.Context) error {
	for _, object := range []client.Object{
		desired.ServiceAccount(s.db), desired.Role(s.db, s.present()), desired.RoleBinding(s.db),
	} {
		if err := s.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	return nil
}

// applyNetwork writes how the instances are reached, and how they are not.
func (s *scope) applyNetwork(ctx context.Context) error {
	now, err := find(ctx, s.Client, s.db, naming.ReadWriteService(s.db.Name), &corev1.Service{})
	if err != nil {
		return err
	}
	var failed error
	for _, service := range desired.Services(s.db, s.passedOn(now)) {
		failed = errors.Join(failed, s.apply(ctx, s.db, service))
	}
	return errors.Join(failed, s.apply(ctx, s.db, desired.NetworkPolicy(s.db, s.Settings)))
}

// passedOn says that the Service NAME is to lead to all instances, whose agents pass clients on. It begins to when they
// all do: the agent of an earlier release passes none on.
func (s *scope) passedOn(now *corev1.Service) bool {
	if s.db.Spec.Service.Route != v1.RouteRelay {
		return false
	}
	if now != nil && now.Spec.Selector[naming.LabelRelay] != "" {
		return true
	}
	for ordinal := range s.instances() {
		if pod := s.seen.pods[ordinal]; pod == nil || pod.Labels[naming.LabelRelay] != naming.Relays {
			return false
		}
	}
	return true
}

// present is how many instances there are or should be, by ordinal: those that
// are wanted, and those that are not gone yet.
func (s *fleetFacts) present() int {
	count := max(s.instances(), s.needed())
	for ordinal := range s.seen.pods {
		count = max(count, ordinal+1)
	}
	return count
}

// applyBudget writes the PodDisruptionBudget, or removes it where none is wanted.
func (s *scope) applyBudget(ctx context.Context) error {
	if want := desired.Budget(s.db); want != nil {
		return s.apply(ctx, s.db, want)
	}
	return s.removeOwn(ctx, naming.Budget(s.db.Name), &policyv1.PodDisruptionBudget{})
}

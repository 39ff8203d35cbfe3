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
	"toban.dev/internal/operator/sampledb/world"
)

// ApplyConfig writes the ConfigMap from which agents and the init Job start. The first
// time, the SampleDB's authority is put on record in it.
func (s *scope) ApplyConfig(ctx context.Context) error {
	if s.Config.Authority == "" {
		authority, _, err := s.Credentials.Bundle(s.DB, s.Authorities(), "")
		if err != nil {
			return err
		}
		s.Config.Authority = authority
		s.Config.Archive = desired.Archive(s.DB, s.Config.Authority, desired.VersionsOf(s.Config))
		s.Config = s.Config.Revise()
	}
	object, err := desired.ConfigMap(s.DB, s.Config)
	if err != nil {
		return err
	}
	return s.Apply(ctx, s.DB, object)
}

// applyAccess writes what the instances run as and may do.
func (s *scope) applyAccess(ctx context.Context) error {
	for _, object := range []client.Object{
		desired.ServiceAccount(s.DB), desired.Role(s.DB, s.Present()), desired.RoleBinding(s.DB),
	} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	return nil
}

// applyNetwork writes how the instances are reached, and how they are not.
func (s *scope) applyNetwork(ctx context.Context) error {
	now, err := world.Find(ctx, s.Client, s.DB, naming.ReadWriteService(s.DB.Name), &corev1.Service{})
	if err != nil {
		return err
	}
	green, err := s.servingGreen(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, service := range desired.Services(s.DB, desired.Leads{PassedOn: s.passedOn(now), Green: green}) {
		failed = errors.Join(failed, s.Apply(ctx, s.DB, service))
	}
	return errors.Join(failed, s.Apply(ctx, s.DB, desired.NetworkPolicy(s.DB, s.Settings)))
}

// servingGreen is the second side where that one serves, nil where it does not, and where it is not there.
func (s *scope) servingGreen(ctx context.Context) (*v1.SampleDB, error) {
	if !s.DB.Status.Upgrade.GreenServes() {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	green, err := world.Find(ctx, s.Client, s.DB, naming.Green(s.DB.Name), &v1.SampleDB{})
	if green == nil || err != nil || !world.Ours(green, s.DB) {
		return nil, err
	}
	return green, nil
}

// passedOn says that the Service NAME is to lead to all instances, whose agents pass clients on. It begins to when they
// all do: the agent of an earlier release passes none on.
func (s *scope) passedOn(now *corev1.Service) bool {
	if s.DB.Spec.Service.Route != v1.RouteRelay {
		return false
	}
	if now != nil && now.Spec.Selector[naming.LabelRelay] != "" {
		return true
	}
	for ordinal := range s.Instances() {
		if pod := s.Seen.Pods[ordinal]; pod == nil || pod.Labels[naming.LabelRelay] != naming.Relays {
			return false
		}
	}
	return true
}

// applyBudget writes the PodDisruptionBudget, or removes it where none is wanted.
func (s *scope) applyBudget(ctx context.Context) error {
	if want := desired.Budget(s.DB); want != nil {
		return s.Apply(ctx, s.DB, want)
	}
	return s.RemoveOwn(ctx, naming.Budget(s.DB.Name), &policyv1.PodDisruptionBudget{})
}

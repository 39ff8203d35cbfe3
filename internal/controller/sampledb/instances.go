package sampledb

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// applyInstances writes the StatefulSet.
func (r *Reconciler) applyInstances(ctx context.Context, s *scope) error {
	set, err := desired.StatefulSet(s.db, r.Settings, replicas(s), s.seen.set)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	if err := r.apply(ctx, s.db, set); err != nil {
		return err
	}
	if s.seen.set != nil && s.seen.set.Spec.Replicas != nil && *s.seen.set.Spec.Replicas != *set.Spec.Replicas {
		s.note(eventScaling, fmt.Sprintf("from %d to %d instances", *s.seen.set.Spec.Replicas, *set.Spec.Replicas))
	}
	return nil
}

// replicas is how many Pods the StatefulSet should have: the wanted instances. It does
// not yet shrink while the primary would go without one that could take its place.
func replicas(s *scope) int {
	want := s.instances()
	if s.seen.set == nil || s.seen.set.Spec.Replicas == nil || int(*s.seen.set.Spec.Replicas) <= want {
		return want
	}
	primary := s.primary()
	ordinal, known := naming.Ordinal(primary)
	if primary == "" || !known || ordinal < want {
		return want
	}
	for i := range want {
		if s.instanceReady(naming.Instance(s.db.Name, i)) {
			return want
		}
	}
	return int(*s.seen.set.Spec.Replicas)
}

// primary is the instance that takes writes by its agent's own word, "" where
// none says so. Of two, that of the later term.
func (s *scope) primary() string {
	name, term := "", uint64(0)
	for _, a := range s.seen.answers {
		if a.Role == protocol.RolePrimary && a.Ready && (name == "" || a.Term > term) {
			name, term = a.Name, a.Term
		}
	}
	return name
}

// instanceReady says that an instance does what its role asks by its agent's own
// word. A Pod that merely runs is not ready, nor one that is about to end.
func (s *scope) instanceReady(name string) bool {
	a, known := s.seen.answers[name]
	if !known || !a.Ready {
		return false
	}
	ordinal, _ := naming.Ordinal(name)
	if pod := s.seen.pods[ordinal]; pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	return a.Role == protocol.RolePrimary || a.Role == protocol.RoleStandby && a.Streaming
}

// healthy says that every wanted instance is ready, one of them as primary.
func (s *scope) healthy() bool {
	for i := range s.instances() {
		if !s.instanceReady(naming.Instance(s.db.Name, i)) {
			return false
		}
	}
	return s.primary() != ""
}

// podReady is what the kubelet says of a Pod.
func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

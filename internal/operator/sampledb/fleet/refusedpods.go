package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
)

// What the controllers of Kubernetes say when they make a Pod, and when they may not (Kubernetes 1.36,
// pkg/controller/statefulset/stateful_pod_control.go). A StatefulSet has no condition for it.
const (
	eventPodCreated = "SuccessfulCreate"
	eventPodRefused = "FailedCreate"
)

// ObserveRefusedPods reads why Pods of instances are not even made: a quota, a limit range or a policy refuses them.
// It asks only while a Pod is missing that the StatefulSet should have made.
func (s *fleetTopic) ObserveRefusedPods(ctx context.Context) error {
	set := s.Seen.Set
	if set == nil || set.DeletionTimestamp != nil || set.Spec.Replicas == nil ||
		len(s.Seen.Pods) >= int(*set.Spec.Replicas) {
		return nil
	}
	var all corev1.EventList
	if err := s.Reader.List(ctx, &all, client.InNamespace(set.Namespace), client.MatchingFields{
		"involvedObject.uid": string(set.UID),
	}); err != nil {
		return fmt.Errorf("list the events of StatefulSet %s: %w", set.Name, err)
	}
	s.Seen.PodsRefused = refusedPods(all.Items)
	return nil
}

// refusedPods is what the last attempt to make a Pod has come to: "" where it was made, or nothing is known.
func refusedPods(all []corev1.Event) string {
	var last *corev1.Event
	for i := range all {
		e := &all[i]
		if (e.Reason == eventPodCreated || e.Reason == eventPodRefused) &&
			(last == nil || happened(last).Before(happened(e))) {
			last = e
		}
	}
	if last == nil || last.Reason == eventPodCreated {
		return ""
	}
	return last.Message
}

// happened is when an event happened last.
func happened(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.LastTimestamp.IsZero():
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}

// PodsRefused is the trouble that a Pod is not made.
func (s *fleetTopic) podsRefused() *world.Verdict {
	if s.Seen.PodsRefused == "" {
		return nil
	}
	return &world.Verdict{Reason: v1.ReasonPodRefused, Message: "the cluster refuses a Pod: " + s.Seen.PodsRefused}
}

// Trouble is what keeps the Pods of wanted instances from running, of the first
// that has any; nil when nothing is known to.
func (s *fleetTopic) Trouble() *world.Verdict {
	for ordinal := range s.Instances() {
		pod := s.Seen.Pods[ordinal]
		if pod == nil {
			if t := s.podsRefused(); t != nil {
				return t
			}
			continue
		}
		if s.InstanceReady(pod.Name) {
			continue
		}
		if t := world.PodTrouble(pod); t != nil {
			return t
		}
	}
	return nil
}

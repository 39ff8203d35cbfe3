package world

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/pods"
)

// PodTrouble is what keeps a Pod from working, nil where nothing does.
func PodTrouble(pod *corev1.Pod) *Verdict {
	if t := unusable(pod); t != nil {
		return t
	}
	t := pods.TroubleOf(pod)
	if t == nil {
		return nil
	}
	reason := map[pods.Cause]string{
		pods.Unschedulable: v1.ReasonUnschedulable, pods.Image: v1.ReasonImageUnusable,
		pods.Config: v1.ReasonInvalidSpec, pods.Crashing: v1.ReasonCrashing,
	}[t.Cause]
	return &Verdict{"", reason, t.Message}
}

// lacksPullSecret says that the image of a Pod can't be pulled, and that it does not have all Secrets for that which a
// new one would have: those of a Pod that is there can't be changed. It may have more, from its ServiceAccount.
func (s *fleetFacts) lacksPullSecret(pod *corev1.Pod) bool {
	t := pods.TroubleOf(pod)
	if t == nil || t.Cause != pods.Image || s.Seen.Set == nil {
		return false
	}
	wanted := s.Seen.Set.Spec.Template.Spec.ImagePullSecrets
	return slices.ContainsFunc(wanted, func(w corev1.LocalObjectReference) bool {
		return !slices.Contains(pod.Spec.ImagePullSecrets, w)
	})
}

// unusable is what an agent says that finds no PostgreSQL in the image: it ends with ExitImageUnusable and says so in
// its termination message. That is told at once, and not when it has ended again and again.
func unusable(pod *corev1.Pod) *Verdict {
	for _, c := range pod.Status.ContainerStatuses {
		ended := c.State.Terminated
		if ended == nil {
			ended = c.LastTerminationState.Terminated
		}
		running := c.State.Running != nil && c.Started != nil && *c.Started
		if c.Name == naming.ContainerPostgreSQL && ended != nil &&
			ended.ExitCode == naming.ExitImageUnusable && !running {
			return &Verdict{"", v1.ReasonImageUnusable, strings.TrimSpace(ended.Message)}
		}
	}
	return nil
}

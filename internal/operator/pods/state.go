package pods

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Ready is what the kubelet says of a Pod.
func Ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Ended says that all of a Pod's containers have ended for good.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// LostOf is why Kubernetes does not know what has become of a Pod that was running, "" where it does: its node does not
// answer. The Pod may run all the same.
func LostOf(pod *corev1.Pod, now time.Time) string {
	if Ended(pod) {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			return c.Message
		case c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && allRun(pod):
			return fmt.Sprintf("node %s does not answer", pod.Spec.NodeName)
		}
	}
	if d := pod.DeletionTimestamp; d != nil && now.After(d.Time) { // which has the grace period in it
		return fmt.Sprintf("node %s does not say that it has ended", pod.Spec.NodeName)
	}
	return ""
}

// allRun says that all of a Pod's containers run, by what the kubelet has said last. None of them has a readiness probe
// where this counts, so that only the node's own controller says that such a Pod is not ready.
func allRun(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}

// deferredFor is how long a node may have no room for what a Pod is to get, or fail to give it, before another node is
// looked for.
const deferredFor = 5 * time.Minute

// Resizing says what a Pod waits for that gets other resources while it runs, "" where it does not; and whether the
// node does not give them to it.
func Resizing(pod *corev1.Pod, now time.Time) (waits string, refused bool) {
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		long := now.Sub(c.LastTransitionTime.Time) > deferredFor
		switch c.Type { //nolint:exhaustive // the others are about something else
		case corev1.PodResizePending:
			refused := c.Reason == corev1.PodReasonInfeasible || long
			return fmt.Sprintf("its node has no room for its resources now (%s: %s)", c.Reason, c.Message), refused
		case corev1.PodResizeInProgress:
			refused := c.Reason == corev1.PodReasonError && long
			return strings.TrimSpace("it is given its resources " + c.Message), refused
		}
	}
	if seen := pod.Status.ObservedGeneration; seen > 0 && seen < pod.Generation {
		return "its node has not seen its resources yet", false
	}
	return "", false
}

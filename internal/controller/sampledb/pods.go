package sampledb

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// trouble is what keeps the Pods of wanted instances from running, of the first
// that has any; nil when nothing is known to.
func (s *scope) trouble() *verdict {
	for ordinal := range s.instances() {
		pod := s.seen.pods[ordinal]
		if pod == nil || s.instanceReady(pod.Name) {
			continue
		}
		if t := podTrouble(pod); t != nil {
			return t
		}
	}
	return nil
}

func podTrouble(pod *corev1.Pod) *verdict {
	if t := unschedulable(pod); t != nil {
		return t
	}
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range all {
		if t := containerTrouble(pod, &all[i]); t != nil {
			return t
		}
	}
	return nil
}

func unschedulable(pod *corev1.Pod) *verdict {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &verdict{"", v1.ReasonUnschedulable, fmt.Sprintf("no node takes %s: %s", pod.Name, c.Message)}
		}
	}
	return nil
}

// Reasons for which a container waits, as the kubelet gives them.
var (
	pullReasons = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}
	runReasons  = []string{"CreateContainerError", "RunContainerError"}
)

const crashLoop = "CrashLoopBackOff"

// containerTrouble reads a container's state. An agent that finds no PostgreSQL
// in the image ends with exitUnusable and says so in its termination message.
func containerTrouble(pod *corev1.Pod, c *corev1.ContainerStatus) *verdict {
	if w := c.State.Waiting; w != nil {
		switch {
		case slices.Contains(pullReasons, w.Reason):
			return &verdict{"", v1.ReasonImageUnusable, fmt.Sprintf("the image %s can't be pulled for %s: %s", c.Image, pod.Name, detail(w))}
		case slices.Contains(runReasons, w.Reason):
			return &verdict{"", v1.ReasonImageUnusable, fmt.Sprintf("the image %s can't be run as %s: %s", c.Image, pod.Name, detail(w))}
		case w.Reason == "CreateContainerConfigError":
			return &verdict{"", v1.ReasonInvalidSpec, fmt.Sprintf("%s can't be started: %s", pod.Name, detail(w))}
		}
	}
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	running := c.State.Running != nil && c.Started != nil && *c.Started
	if ended == nil || ended.ExitCode == 0 || running {
		return nil
	}
	message := strings.TrimSpace(ended.Message)
	if c.Name == naming.ContainerPostgreSQL && ended.ExitCode == naming.ExitImageUnusable {
		return &verdict{"", v1.ReasonImageUnusable, message}
	}
	if c.State.Waiting == nil || c.State.Waiting.Reason != crashLoop {
		return nil // once is not again and again
	}
	if message == "" {
		message = fmt.Sprintf("exit code %d, see kubectl logs %s -c %s --previous", ended.ExitCode, pod.Name, c.Name)
	}
	return &verdict{"", v1.ReasonCrashing, fmt.Sprintf("container %s of %s ends again and again: %s", c.Name, pod.Name, message)}
}

func detail(w *corev1.ContainerStateWaiting) string {
	if w.Message == "" {
		return w.Reason
	}
	return w.Message
}

package pods

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Cause is what keeps a Pod from running.
type Cause string

// The causes.
const (
	Unschedulable Cause = "Unschedulable" // no node takes it
	Image         Cause = "Image"         // its image can't be pulled or run
	Config        Cause = "Config"        // something that it names is missing
	Crashing      Cause = "Crashing"      // a container ends again and again
)

// Trouble is what keeps a Pod from running, in the words of who knows.
type Trouble struct {
	Cause   Cause
	Message string
}

// TroubleOf is what keeps a Pod from running, nil when nothing is known to, or there is no Pod.
func TroubleOf(pod *corev1.Pod) *Trouble {
	if pod == nil {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			return &Trouble{Unschedulable, fmt.Sprintf("%s fits on no node: %s", pod.Name, c.Message)}
		}
	}
	all := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range all {
		if t := containerTrouble(pod, &all[i]); t != nil {
			return t
		}
	}
	return nil
}

// Gates says for which scheduling gates a Pod waits, "" for none. That is no trouble: who has set them takes them away.
func Gates(pod *corev1.Pod) string {
	if pod == nil || len(pod.Spec.SchedulingGates) == 0 {
		return ""
	}
	var names []string
	for _, g := range pod.Spec.SchedulingGates {
		names = append(names, g.Name)
	}
	return fmt.Sprintf("%s waits until whoever has set its scheduling gates removes them: %s", pod.Name,
		strings.Join(names, ", "))
}

// Reasons for which a container waits, as the kubelet gives them.
var (
	pullReasons = []string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
		"ImageInspectError", "RegistryUnavailable",
	}
	runReasons = []string{"CreateContainerError", "RunContainerError"}
)

const (
	configError = "CreateContainerConfigError"
	crashLoop   = "CrashLoopBackOff"
)

func containerTrouble(pod *corev1.Pod, c *corev1.ContainerStatus) *Trouble {
	w := c.State.Waiting
	switch {
	case w == nil:
		return nil
	case slices.Contains(pullReasons, w.Reason):
		return &Trouble{Image, fmt.Sprintf("the image %s can't be pulled for %s: %s", c.Image, pod.Name, detail(w))}
	case slices.Contains(runReasons, w.Reason):
		return &Trouble{Image, fmt.Sprintf("the image %s can't be run as %s: %s", c.Image, pod.Name, detail(w))}
	case w.Reason == configError:
		return &Trouble{Config, fmt.Sprintf("%s can't be started: %s", pod.Name, detail(w))}
	}
	ended := c.LastTerminationState.Terminated
	if w.Reason != crashLoop || ended == nil {
		return nil // once is not again and again
	}
	message := strings.TrimSpace(ended.Message)
	if message == "" {
		message = fmt.Sprintf("exit code %d, see kubectl logs %s -c %s --previous", ended.ExitCode, pod.Name, c.Name)
	}
	return &Trouble{Crashing, fmt.Sprintf("container %s of %s ends again and again: %s", c.Name, pod.Name, message)}
}

func detail(w *corev1.ContainerStateWaiting) string {
	if w.Message == "" {
		return w.Reason
	}
	return w.Message
}

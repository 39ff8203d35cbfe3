package sampledb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestTroubleOfAPodIsToldInTheWordsOfWhoKnows(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(code int32, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
	}
	yes := true
	for name, c := range map[string]struct {
		state, last corev1.ContainerState
		started     *bool
		reason      string
		words       string
	}{
		"it is being created": {state: waiting("ContainerCreating", "")},
		"the image can't be pulled": {
			state: waiting("ImagePullBackOff", "not found"), reason: v1.ReasonImageUnusable, words: "not found",
		},
		"the image's name is none": {
			state: waiting("InvalidImageName", ""), reason: v1.ReasonImageUnusable, words: "InvalidImageName",
		},
		"it can't be started": {
			state: waiting("RunContainerError", "no such file"), reason: v1.ReasonImageUnusable, words: "no such file",
		},
		"something it needs is missing": {
			state: waiting("CreateContainerConfigError", "x"), reason: v1.ReasonInvalidSpec, words: "x",
		},
		"no PostgreSQL in it, at once": {
			state:  ended(naming.ExitImageUnusable, "no PostgreSQL programs in this image"),
			reason: v1.ReasonImageUnusable, words: "no PostgreSQL programs",
		},
		"no PostgreSQL in it, still": {
			state: waiting("CrashLoopBackOff", "back-off"), last: ended(naming.ExitImageUnusable, "no PostgreSQL"),
			reason: v1.ReasonImageUnusable, words: "no PostgreSQL",
		},
		"it ended once": {state: ended(1, "oh")},
		"it ends again and again": {
			state: waiting("CrashLoopBackOff", "back-off"), last: ended(1, "the disk is gone"),
			reason: v1.ReasonCrashing, words: "the disk is gone",
		},
		"it ends without a word": {
			state: waiting("CrashLoopBackOff", "back-off"), last: ended(139, ""), reason: v1.ReasonCrashing,
			words: "kubectl logs x-0 -c postgresql --previous",
		},
		"it had trouble, and runs by now": {
			state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
			last:  ended(naming.ExitImageUnusable, "old"), started: &yes,
		},
		"it was stopped properly, for once": {state: ended(0, "")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-0"}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: naming.ContainerPostgreSQL, Image: "i", State: c.state,
				LastTerminationState: c.last, Started: c.started,
			}}
			got := podTrouble(pod)
			if c.reason == "" {
				if got != nil {
					t.Errorf("trouble: %+v, want none", *got)
				}
				return
			}
			if got == nil || got.reason != c.reason || !strings.Contains(got.message, c.words) {
				t.Errorf("trouble: %+v, want %s with %q", got, c.reason, c.words)
			}
		})
	}
}

func TestNoNodeTakesThePodInTheSchedulersWords(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-0"}}
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available",
	}}
	if got := podTrouble(pod); got == nil || got.reason != v1.ReasonUnschedulable ||
		!strings.Contains(got.message, "0/3 nodes") {
		t.Errorf("trouble: %+v", got)
	}
}

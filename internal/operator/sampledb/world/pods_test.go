package world

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
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
			got := PodTrouble(pod)
			if c.reason == "" {
				if got != nil {
					t.Errorf("trouble: %+v, want none", *got)
				}
				return
			}
			if got == nil || got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
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
	if got := PodTrouble(pod); got == nil || got.Reason != v1.ReasonUnschedulable ||
		!strings.Contains(got.Message, "0/3 nodes") {
		t.Errorf("trouble: %+v", got)
	}
}

// A Pod whose image can't be pulled does not get the Secret that is added to the spec: a Pod's own can't change. One
// that has its image needs no other, and one that has the Secret waits for the registry.
func TestAPodWithoutItsPullSecretIsReplaced(t *testing.T) {
	refused := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}
	secrets := func(names ...string) (out []corev1.LocalObjectReference) {
		for _, name := range names {
			out = append(out, corev1.LocalObjectReference{Name: name})
		}
		return out
	}
	for name, c := range map[string]struct {
		have, want []corev1.LocalObjectReference
		state      corev1.ContainerState
		outdated   bool
	}{
		"it lacks the Secret":             {nil, secrets("registry"), refused, true},
		"it has a former one":             {secrets("old"), secrets("registry"), refused, true},
		"it has it, and its account's":    {secrets("registry", "own"), secrets("registry"), refused, false},
		"none is wanted":                  {secrets("own"), nil, refused, false},
		"its image is there all the same": {nil, secrets("registry"), corev1.ContainerState{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			set := &appsv1.StatefulSet{}
			set.Spec.Template.Spec.ImagePullSecrets = c.want
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-0"}}
			pod.Spec.ImagePullSecrets = c.have
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerPostgreSQL, State: c.state}}
			s := actOf(Core{DB: db, Seen: Observed{Pods: map[int]*corev1.Pod{0: pod}, Set: set}})
			s.Config.Members = make([]protocol.Member, 1)
			if got := s.Fleet().Instances[0].Outdated; (len(got) > 0) != c.outdated {
				t.Errorf("it is outdated in %v, want %t", got, c.outdated)
			}
		})
	}
}

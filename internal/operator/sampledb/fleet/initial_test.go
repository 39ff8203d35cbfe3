package fleet

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
)

// What keeps the Pod of the init Job from running is told, also of a container that comes before its own.
func TestWhatKeepsTheInitJobFromBeginningIsTold(t *testing.T) {
	away := []corev1.ContainerStatus{{Image: "toban:none", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"},
	}}}
	for name, c := range map[string]struct {
		status        corev1.PodStatus
		reason, words string
	}{
		"it waits": {corev1.PodStatus{}, v1.ReasonInitRunning, "the init Job waits for the primary"},
		"the operator's image can't be pulled": {corev1.PodStatus{InitContainerStatuses: away}, v1.ReasonInitFailed,
			"the image toban:none can't be pulled for x-init-a: ErrImagePull (it will be tried again)"},
		"no node takes it": {corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes",
		}}}, v1.ReasonUnschedulable, "x-init-a fits on no node: 0/3 nodes"},
	} {
		yes := true
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-init", UID: "u"}}
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-init-a", OwnerReferences: []metav1.OwnerReference{
			{Kind: "Job", Name: "x-init", UID: "u", Controller: &yes},
		}}, Status: c.status}
		got := progress(jobs.Of(job, []corev1.Pod{pod}))
		if got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
			t.Errorf("%s: %+v", name, got)
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		if got := progress(jobs.Of(job, []corev1.Pod{pod})); got.Reason != v1.ReasonInitFailed {
			t.Errorf("%s, and its Job has failed: %+v", name, got)
		}
	}
}

// What has failed is not forgotten while the next Pod waits for a node.
func TestWhatTheInitPodBeforeHasSaidStaysWhileTheNextOneWaits(t *testing.T) {
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-init", UID: "u"}}
	pod := func(name string, status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{Kind: "Job", Name: "x-init", UID: "u", Controller: &yes},
		}}, Status: status}
	}
	failed := pod("x-init-a", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Message: `{"step":"schema.sql","message":"syntax error"}`,
		}},
	}}})
	waits := pod("x-init-b", corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes",
	}}})
	got := progress(jobs.Of(job, []corev1.Pod{failed, waits}))
	if want := "x-init-b fits on no node: 0/3 nodes"; got.Reason != v1.ReasonUnschedulable ||
		!strings.Contains(got.Message, want) ||
		!strings.HasSuffix(got.Message, ". The Pod before it has failed: schema.sql: syntax error") {
		t.Errorf("it says %+v", got)
	}
}

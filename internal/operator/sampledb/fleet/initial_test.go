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
	of := func(state corev1.ContainerState) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: state, Image: "toban:none"}}}
	}
	failed := pod("x-init-a", of(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Message: `{"step":"schema.sql","message":"syntax error"}`,
	}}))
	killed := pod("x-init-k", of(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "OOMKilled",
	}}))
	evicted := pod("x-init-e", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory"})
	pulls := pod("x-init-p", of(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}))
	silent := pod("x-init-s", corev1.PodStatus{})
	waits := pod("x-init-w", corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes",
	}}})
	const has = ". The Pod before it has failed: "
	for want, before := range map[string][]corev1.Pod{
		has + "schema.sql: syntax error":                                                       {failed},
		has + "x-init-k was ended without a word: OOMKilled, exit code 137":                    {failed, killed},
		has + "low on memory":                                                                  {failed, evicted},
		". The Pod before it could not run: the image toban:none can't be pulled for x-init-p": {pulls},
		". A Pod before it has failed: schema.sql: syntax error":                               {failed, silent},
		"": {silent},
	} {
		got := progress(jobs.Of(job, append(before, waits)))
		want = "x-init-w fits on no node: 0/3 nodes" + want
		if !strings.Contains(got.Message, want) || got.Reason != v1.ReasonUnschedulable {
			t.Errorf("it says %q, want %q", got.Message, want)
		}
	}
}

package databasebackup

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// server has the Pods that there are, past the cache.
type server struct {
	client.Reader
	pods  []corev1.Pod
	asked int
}

func (s *server) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	s.asked++
	if all, ok := into.(*corev1.PodList); ok {
		all.Items = s.pods
	}
	return nil
}

// Only what a Pod has left proves a backup, and the cache may not have that yet when the Job has ended.
func TestTheResultOfABackupIsReadPastTheCacheBeforeItIsLost(t *testing.T) {
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "j"}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	left := func(name, text string) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name,
			OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: &yes}}}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerBackup,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: text}}}}
		return p
	}
	failed, runs := left("a", `{"error":"no bucket"}`), left("b", "")
	runs.Status.ContainerStatuses = nil
	ended := left("b", `{"id":"20261120T031500Z-3f2a"}`)
	for name, c := range map[string]struct {
		cached, there []corev1.Pod
		asked         int
		known         bool
	}{
		"the cache has it":                 {[]corev1.Pod{failed, ended}, nil, 0, true},
		"the cache is behind":              {[]corev1.Pod{failed, runs}, []corev1.Pod{failed, ended}, 1, true},
		"the Pod is gone":                  {[]corev1.Pod{runs}, nil, 1, false},
		"only one that failed is left":     {[]corev1.Pod{failed}, []corev1.Pod{failed}, 1, false},
		"the Pod could not say it":         {[]corev1.Pod{left("b", "")}, []corev1.Pod{left("b", "")}, 1, false},
		"what it has left is cut off":      {nil, []corev1.Pod{left("b", `{"id":"2026`)}, 1, false},
		"what it has left names no backup": {nil, []corev1.Pod{left("b", `{"warning":"slow"}`)}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := &server{pods: c.there}
			s := &scope{
				Task:       &order.Task[*v1.DatabaseBackup]{Object: &v1.DatabaseBackup{}, Run: jobs.Of(job, c.cached)},
				Reconciler: &Reconciler{Base: order.Base{Reader: api}},
			}
			if err := s.observeResult(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if s.known() != c.known || api.asked != c.asked {
				t.Errorf("known: %v of %+v, asked %d times", s.known(), s.seen.result, api.asked)
			}
		})
	}
}

// A backup whose Pod waits for its scheduling gates says so: nothing else tells of it.
func TestABackupSaysForWhichGatesItsPodWaits(t *testing.T) {
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "j"}}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b-1",
		OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: &yes}}}}
	for want, gates := range map[string][]corev1.PodSchedulingGate{
		"its Pod is being started": nil,
		"b-1 waits until whoever has set its scheduling gates removes them: queue": {{Name: "queue"}},
	} {
		pod.Spec.SchedulingGates = gates
		s := &scope{Task: &order.Task[*v1.DatabaseBackup]{
			Object: &v1.DatabaseBackup{}, Run: jobs.Of(job, []corev1.Pod{pod}),
		}}
		if got := s.howFar(); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
}

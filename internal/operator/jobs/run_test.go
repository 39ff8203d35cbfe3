package jobs_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/operator/jobs"
)

// job is one with conditions, each with a reason.
func job(modify ...func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "x"}}
	for _, m := range modify {
		m(j)
	}
	return j
}

func with(kind batchv1.JobConditionType, status corev1.ConditionStatus, reason string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions,
			batchv1.JobCondition{Type: kind, Status: status, Reason: reason, Message: "because of " + reason})
	}
}

func deleted(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// pod is one of a Job, made at a second, in a phase; its container "work" has left a text, "-" for not ended.
func pod(owner, name string, second int64, phase corev1.PodPhase, left string) corev1.Pod {
	yes := true
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)),
		OwnerReferences: []metav1.OwnerReference{{UID: types.UID(owner), Controller: &yes}},
	}}
	p.Status.Phase = phase
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: left}}
	if left == "-" {
		state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "beside", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: "not this"},
		}},
		{Name: "work", State: state},
	}
	return p
}

// oneOf is a single Pod of a Job, in a phase.
func oneOf(owner string, phase corev1.PodPhase) []corev1.Pod {
	return []corev1.Pod{pod(owner, "a", 1, phase, "")}
}

func TestHowAJobIs(t *testing.T) {
	failed := with(batchv1.JobFailed, corev1.ConditionTrue, "BackoffLimitExceeded")
	late := with(batchv1.JobFailed, corev1.ConditionTrue, batchv1.JobReasonDeadlineExceeded)
	complete := with(batchv1.JobComplete, corev1.ConditionTrue, "CompletionsReached")
	for name, c := range map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want jobs.State
	}{
		"there is none":                       {nil, oneOf("x", corev1.PodSucceeded), jobs.None},
		"it has just been made":               {job(), nil, jobs.Running},
		"a Pod has failed, and it goes on":    {job(), oneOf("x", corev1.PodFailed), jobs.Running},
		"it is being deleted":                 {job(deleted), nil, jobs.Ending},
		"it has ended well":                   {job(complete), nil, jobs.Complete},
		"it has not noticed yet that it has":  {job(), oneOf("x", corev1.PodSucceeded), jobs.Complete},
		"somebody else's Pod has ended well":  {job(), oneOf("y", corev1.PodSucceeded), jobs.Running},
		"it has failed":                       {job(failed), nil, jobs.Failed},
		"it has failed, and is being deleted": {job(failed, deleted), nil, jobs.Failed},
		"it took too long":                    {job(late), nil, jobs.Late},
		"it has not failed": {
			job(with(batchv1.JobFailed, corev1.ConditionFalse, "No")), nil, jobs.Running,
		},
	} {
		run := jobs.Of(c.job, c.pods)
		if got := run.State(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		over := c.want == jobs.Complete || c.want == jobs.Failed || c.want == jobs.Late
		if run.Ended() != over || (run.Failure() != nil) != (c.want == jobs.Failed || c.want == jobs.Late) {
			t.Errorf("%s: ended %v, failure %v", name, run.Ended(), run.Failure())
		}
	}
	if got := jobs.Of(job(late), nil).EndMessage(); got != "because of DeadlineExceeded" {
		t.Errorf("it says of its end: %q", got)
	}
	if got := jobs.Of(job(), nil).EndMessage(); got != "" {
		t.Errorf("it says of its end before that: %q", got)
	}
}

func TestWhatThePodsOfAJobHaveLeft(t *testing.T) {
	run := jobs.Of(job(), []corev1.Pod{
		pod("x", "d", 4, corev1.PodRunning, "-"), pod("x", "c", 3, corev1.PodFailed, ""),
		pod("x", "a", 1, corev1.PodFailed, "first"), pod("x", "b", 1, corev1.PodFailed, "second"),
		pod("y", "e", 5, corev1.PodFailed, "another's"),
	})
	if got := run.Left("work"); !slices.Equal(got, []string{"first", "second", ""}) {
		t.Errorf("they left %q", got)
	}
	if got := run.Last("work"); got != "second" {
		t.Errorf("the last is %q", got)
	}
	if got := run.Newest(); got == nil || got.Name != "d" {
		t.Errorf("the newest is %v", got)
	}
	if none := jobs.Of(nil, nil); none.Newest() != nil || none.Last("work") != "" {
		t.Error("of no Job there is something")
	}
}

func TestAResultIsOursOrNone(t *testing.T) {
	type result struct{ Error string }
	if got := jobs.Result[result](`{"error":"no"}`); got == nil || got.Error != "no" {
		t.Errorf("it is %v", got)
	}
	for _, text := range []string{"", "panic: oh", `{"error":`, `["error"]`} {
		if got := jobs.Result[result](text); got != nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

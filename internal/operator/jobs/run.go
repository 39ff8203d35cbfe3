package jobs

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is how a Job is.
type State int

// The states.
const (
	None     State = iota // there is none
	Running               // it has not ended
	Ending                // it is being deleted, and has not ended before
	Complete              // it has ended well
	Failed                // it has ended for good without success
	Late                  // the same, because of its deadline
)

// Run is a Job with its Pods.
type Run struct {
	// Job is nil where there is none.
	Job *batchv1.Job
	// Pods are the Job's own, the oldest first.
	Pods []corev1.Pod
}

// Of is a Job with those of some Pods that are its own.
func Of(job *batchv1.Job, pods []corev1.Pod) Run {
	if job == nil {
		return Run{}
	}
	return Run{Job: job, Pods: OldestFirst(slices.DeleteFunc(slices.Clone(pods),
		func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, job) }))}
}

// OldestFirst are Pods in the order in which they were made.
func OldestFirst(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

// State says how the Job is. What has ended has ended, also while it is being deleted. A Pod that has ended well counts
// at once: the Job itself says so a second or two later.
func (r Run) State() State {
	failure := r.Failure()
	switch {
	case r.Job == nil:
		return None
	case r.condition(batchv1.JobComplete) != nil || slices.ContainsFunc(r.Pods, succeeded):
		return Complete
	case failure != nil && failure.Reason == batchv1.JobReasonDeadlineExceeded:
		return Late
	case failure != nil:
		return Failed
	case r.Job.DeletionTimestamp != nil:
		return Ending
	}
	return Running
}

// Ended says that the Job has ended, well or not.
func (r Run) Ended() bool { return r.State() >= Complete }

// Begun says that a Pod of the Job has begun, or may have. One that is Pending has run none of its containers but those
// for its start; of a node that does not answer nothing is known.
func (r Run) Begun() bool {
	if j := r.Job; j != nil &&
		(j.Status.Ready != nil && *j.Status.Ready > 0 || j.Status.Succeeded > 0 || j.Status.Failed > 0) {
		return true // the Pods that we have seen may be older than what their Job says
	}
	return slices.ContainsFunc(r.Pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodPending && p.Status.Phase != ""
	})
}

// EndedBefore says that the Job had ended, well or not, before a moment.
func (r Run) EndedBefore(moment time.Time) bool {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete} {
		if c := r.condition(kind); c != nil {
			return c.LastTransitionTime.Time.Before(moment)
		}
	}
	return false
}

// Failure is why and when the Job has failed, nil where it has not.
func (r Run) Failure() *batchv1.JobCondition { return r.condition(batchv1.JobFailed) }

// EndMessage is what the Job itself says of its end, "" where it says nothing, or has not ended.
func (r Run) EndMessage() string {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobFailed, batchv1.JobComplete} {
		if c := r.condition(kind); c != nil {
			return c.Message
		}
	}
	return ""
}

// condition is the Job's condition of this type when it is true, else nil.
func (r Run) condition(kind batchv1.JobConditionType) *batchv1.JobCondition {
	if r.Job == nil {
		return nil
	}
	for i := range r.Job.Status.Conditions {
		if c := &r.Job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func succeeded(pod corev1.Pod) bool { return pod.Status.Phase == corev1.PodSucceeded }

// Newest is the Pod that was made last, nil where there is none.
func (r Run) Newest() *corev1.Pod {
	if len(r.Pods) == 0 {
		return nil
	}
	return &r.Pods[len(r.Pods)-1]
}

// Left are the termination messages of a container, of those Pods in which it has ended, the oldest first. One that has
// left nothing is "".
func (r Run) Left(container string) []string {
	var out []string
	for i := range r.Pods {
		for _, c := range r.Pods[i].Status.ContainerStatuses {
			if c.Name == container && c.State.Terminated != nil {
				out = append(out, c.State.Terminated.Message)
			}
		}
	}
	return out
}

// Last is the last text that the Pods have left in a container, "" where none has left any.
func (r Run) Last(container string) string {
	for _, text := range slices.Backward(r.Left(container)) {
		if text != "" {
			return text
		}
	}
	return ""
}

// Result is what a Pod has left as JSON, nil where the text is none of ours.
func Result[T any](text string) *T {
	out := new(T)
	if json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	return out
}

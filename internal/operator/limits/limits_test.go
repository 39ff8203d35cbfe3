package limits

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var night = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

func waiter(name string, minutes int, asked bool) Waiter {
	since := night.Add(time.Duration(minutes) * time.Minute)
	return Waiter{types.NamespacedName{Namespace: "n", Name: name}, since, asked}
}

func TestWhoComesBeforeWhom(t *testing.T) {
	for name, c := range map[string]struct {
		first, second Waiter
	}{
		"the older one":                             {waiter("b", 0, false), waiter("a", 1, false)},
		"of the same age by name":                   {waiter("a", 0, false), waiter("b", 0, false)},
		"one that somebody has asked for":           {waiter("b", 59, true), waiter("a", 0, false)},
		"not if the other has waited longer":        {waiter("b", 0, false), waiter("a", 61, true)},
		"of two that were asked for, the older one": {waiter("b", 0, true), waiter("a", 1, true)},
	} {
		t.Run(name, func(t *testing.T) {
			both := []Waiter{c.second, c.first}
			if ahead(c.first, both) != 0 || ahead(c.second, both) != 1 {
				t.Errorf("%d are before the first, %d before the second", ahead(c.first, both), ahead(c.second, both))
			}
		})
	}
}

// Whatever is asked for later, one that waits is passed by no more than what is asked for within the head start.
func TestNobodyStarves(t *testing.T) {
	waiting := []Waiter{waiter("scheduled", 0, false)}
	for minute := range 1000 {
		// One begins in each minute, and one more is asked for.
		waiting = append(waiting, waiter(fmt.Sprint("asked-", minute), minute, true))
		first := waiting[rand.IntN(len(waiting))]
		for ahead(first, waiting) > 0 {
			for _, w := range waiting {
				if w.before(first) {
					first = w
				}
			}
		}
		if first.Key.Name == "scheduled" {
			if minute > 61 {
				t.Errorf("it begins after %d minutes", minute)
			}
			return
		}
		for i := range waiting {
			if waiting[i].Key == first.Key {
				waiting = append(waiting[:i], waiting[i+1:]...)
				break
			}
		}
	}
	t.Error("it never begins")
}

func TestWhichJobsCount(t *testing.T) {
	job := func(age time.Duration, kind string) *batchv1.Job {
		yes := true
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			UID: "u", CreationTimestamp: metav1.NewTime(night.Add(-age)),
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: &yes}},
		}}
	}
	pod := func(phase corev1.PodPhase, init ...corev1.ContainerStatus) corev1.Pod {
		yes := true
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "u", Controller: &yes}}},
			Status:     corev1.PodStatus{Phase: phase, InitContainerStatuses: init},
		}
	}
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	of := func(age time.Duration) *batchv1.Job { return job(age, "DatabaseBackup") }
	pods := func(all ...corev1.Pod) []corev1.Pod { return all }
	ended := of(time.Hour)
	ended.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		pods []corev1.Pod
		want bool
	}{
		"one that was just created":             {of(time.Second), nil, true},
		"one whose Pod runs":                    {of(time.Hour), pods(pod(corev1.PodRunning)), true},
		"one whose Pod restores first":          {of(time.Hour), pods(pod(corev1.PodPending, running)), true},
		"one whose Pod fits on no node":         {of(time.Hour), pods(pod(corev1.PodPending)), false},
		"one whose Pod the quota refuses":       {of(time.Hour), nil, false},
		"one between two tries":                 {of(time.Hour), pods(pod(corev1.PodFailed)), false},
		"one that has ended":                    {ended, pods(pod(corev1.PodFailed)), false},
		"one that makes room":                   {job(time.Second, "SampleDB"), pods(pod(corev1.PodRunning)), false},
		"one whose Pod ended well a moment ago": {of(time.Second), pods(pod(corev1.PodSucceeded)), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (ran{owner: ownerOfBackups}).counts(c.job, c.pods, night); got != c.want {
				t.Errorf("it counts: %v", got)
			}
		})
	}
}

func TestThePauseGrowsWithTheQueue(t *testing.T) {
	turns := &Turns{Limit: 20}
	for before, want := range map[int]time.Duration{
		0: 10 * time.Second, 19: 10 * time.Second, 20: 20 * time.Second, 1000: time.Minute,
	} {
		if got := turns.Pause(before, 10*time.Second, time.Minute); got != want {
			t.Errorf("with %d before it waits %s, want %s", before, got, want)
		}
	}
}

package major

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
)

var rehearsalNow = time.Date(2026, 11, 21, 3, 12, 0, 0, time.UTC)

// ended is a container that has ended some minutes ago.
func endedContainer(name string, code int32, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, Reason: "Error",
			FinishedAt: metav1.NewTime(rehearsalNow.Add(-3 * time.Minute))},
	}}
}

func runningContainer(name string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

// rehearsalRun is a Job, an hour old, with Pods of these containers, each half an hour old.
func rehearsalRun(pods ...[]corev1.ContainerStatus) jobs.Run {
	yes := true
	run := jobs.Run{Job: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "x-rehearsal-0a", CreationTimestamp: metav1.NewTime(rehearsalNow.Add(-time.Hour)),
	}}}
	for _, all := range pods {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(rehearsalNow.Add(-30 * time.Minute)),
			OwnerReferences:   []metav1.OwnerReference{{Controller: &yes}},
		}}
		for _, c := range all {
			if c.Name == naming.ContainerUpgrade {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, c)
			} else {
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, c)
			}
		}
		run.Pods = append(run.Pods, pod)
	}
	return run
}

// What each container leaves is a problem only where the data or the images have it, and else that it is not known.
func TestWhatTheContainersOfARehearsalSay(t *testing.T) {
	installed := endedContainer(naming.ContainerInstall, 0, "")
	collected := endedContainer(naming.ContainerCollect, 0, "")
	restored := endedContainer(naming.ContainerRestore, 0, `{"lsn":"0/5"}`)
	before := []corev1.ContainerStatus{installed, collected, restored}
	upgraded := func(code int32, message string) []corev1.ContainerStatus {
		return append(slices.Clone(before), endedContainer(naming.ContainerUpgrade, code, message))
	}
	killed := upgraded(137, "")
	for name, c := range map[string]struct {
		pods              [][]corev1.ContainerStatus
		known             bool
		problems, unknown string
	}{
		"all is well":        {[][]corev1.ContainerStatus{upgraded(0, `{"withoutWrites":9.2}`)}, true, "", ""},
		"there are problems": {[][]corev1.ContainerStatus{upgraded(0, `{"problems":["a","b"]}`)}, true, "a,b", ""},
		"it was killed":      {[][]corev1.ContainerStatus{killed}, false, "", "exit code 137"},
		"it was killed, and then done": {
			[][]corev1.ContainerStatus{killed, upgraded(0, `{"withoutWrites":9.2}`)}, true, "", "",
		},
		"it had no room":       {[][]corev1.ContainerStatus{upgraded(65, `{"error":"no room"}`)}, false, "", "no room"},
		"it has left no words": {[][]corev1.ContainerStatus{upgraded(0, "")}, false, "", "exit code 0"},
		"it has left a result, and failed": {
			[][]corev1.ContainerStatus{upgraded(1, `{"withoutWrites":9.2}`)}, false, "", "9.2",
		},
		"a problem, and then no room": {
			[][]corev1.ContainerStatus{upgraded(65, `{"error":"no room","problems":["a"]}`)}, false, "a", "no room",
		},
		"objects of the backup are broken": {[][]corev1.ContainerStatus{{installed, collected, endedContainer(
			naming.ContainerRestore, 65, `{"error":"base/b1 is missing","objects":["base/b1"]}`)}},
			true, "the backup x-1 can't be restored: base/b1 is missing", ""},
		"the store does not answer": {[][]corev1.ContainerStatus{{installed, collected, endedContainer(
			naming.ContainerRestore, 1, `{"error":"the store is away"}`)}}, false, "", "the store is away"},
		"the restore was killed": {[][]corev1.ContainerStatus{{installed, collected, endedContainer(
			naming.ContainerRestore, 137, "")}}, false, "", "the container restore has ended"},
		"the programs can't be brought along": {[][]corev1.ContainerStatus{{installed, endedContainer(
			naming.ContainerCollect, naming.ExitRefused, `{"error":"it has another C library"}`)}},
			true, "it has another C library", ""},
		"bringing them along was killed": {[][]corev1.ContainerStatus{{installed, endedContainer(
			naming.ContainerCollect, 137, "")}}, false, "", "the container collect has ended"},
		"nothing has ended": {[][]corev1.ContainerStatus{{installed, runningContainer(naming.ContainerCollect)}},
			false, "", ""},
		"there was no Pod": {nil, false, "", ""},
	} {
		found, _ := rehearsalFound(rehearsalRun(c.pods...), "x-1")
		if found.Known != c.known || strings.Join(found.Problems, ",") != c.problems ||
			!strings.Contains(found.Unknown, c.unknown) || c.unknown == "" && found.Unknown != "" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

func TestForHowLongARehearsalIsIdle(t *testing.T) {
	installed := endedContainer(naming.ContainerInstall, 0, "")
	waits := corev1.ContainerStatus{Name: naming.ContainerRestore}
	for name, c := range map[string]struct {
		pods [][]corev1.ContainerStatus
		want time.Duration
	}{
		"it has no Pod":     {nil, time.Hour},
		"its Pod waits":     {[][]corev1.ContainerStatus{{waits}}, 30 * time.Minute},
		"it has begun":      {[][]corev1.ContainerStatus{{installed, waits}}, 3 * time.Minute},
		"it restores":       {[][]corev1.ContainerStatus{{installed, runningContainer(naming.ContainerRestore)}}, 0},
		"it upgrades":       {[][]corev1.ContainerStatus{{installed, runningContainer(naming.ContainerUpgrade)}}, 0},
		"another Pod waits": {[][]corev1.ContainerStatus{{installed}, {waits}}, 30 * time.Minute},
	} {
		if got := idle(rehearsalNow, rehearsalRun(c.pods...)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

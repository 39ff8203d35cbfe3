package verification

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func TestDecide(t *testing.T) {
	good := &protocol.VerifyResult{LSN: "0/6000000", Recovery: 83.26}
	bad := &protocol.VerifyResult{Error: "base/b1/base.tar.00000.zst is missing"}
	for name, c := range map[string]struct {
		view   view
		want   decision
		reason string
		words  string
	}{
		"the SampleDB is stopped": {
			view{complete: true, possible: true, stopped: true, asked: "a"}, decision{}, v1.ReasonVerifying,
			"is started",
		},
		"the SampleDB is stopped, and it runs already": {
			view{complete: true, possible: true, stopped: true, asked: "a", job: jobRunning, name: "x"}, decision{},
			v1.ReasonVerifying, "Job x restores",
		},
		"nobody asks":             {view{complete: true, possible: true}, decision{}, "", ""},
		"it is not complete yet":  {view{asked: "a", possible: true}, decision{}, "", ""},
		"it was for that request": {view{complete: true, possible: true, asked: "a", done: "a"}, decision{}, "", ""},
		"it is asked for": {
			view{complete: true, possible: true, asked: "a"}, decision{create: true}, v1.ReasonVerifying, "started",
		},
		"it is asked for again": {
			view{complete: true, possible: true, asked: "b", done: "a"}, decision{create: true}, v1.ReasonVerifying, "",
		},
		"the SampleDB is gone": {
			view{complete: true, asked: "a"}, decision{}, v1.ReasonVerifying, "waits for the SampleDB",
		},
		"its Pod runs": {
			view{complete: true, asked: "a", job: jobRunning, name: "j"}, decision{}, v1.ReasonVerifying, "Job j",
		},
		"its Pod has no node": {
			view{complete: true, asked: "a", job: jobRunning, words: "no room"}, decision{},
			v1.ReasonVerifying, "no room",
		},
		"all is well": {
			view{complete: true, asked: "a", job: jobEnded, result: good}, decision{over: true}, v1.ReasonVerified,
			"0/6000000 in 1m23.26s",
		},
		"an object is missing": {
			view{complete: true, asked: "a", job: jobEnded, result: bad}, decision{over: true},
			v1.ReasonVerificationFailed, "is missing",
		},
		"it took too long": {
			view{complete: true, asked: "a", job: jobEnded, late: 24 * time.Hour, words: "replays WAL: 7 %"},
			decision{over: true}, v1.ReasonVerificationFailed, "longer than 24h0m0s",
		},
		"what it was at when it took too long": {
			view{complete: true, asked: "a", job: jobEnded, late: 24 * time.Hour, words: "replays WAL: 7 %"},
			decision{over: true}, v1.ReasonVerificationFailed, "last: replays WAL: 7 %",
		},
		"it was done just in time": {
			view{complete: true, asked: "a", job: jobEnded, result: good, late: 24 * time.Hour}, decision{over: true},
			v1.ReasonVerified, "",
		},
		"its Pod was killed without a word": {
			view{complete: true, asked: "a", job: jobEnded, name: "j"}, decision{over: true},
			v1.ReasonVerificationFailed, "kubectl describe job j",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(c.view)
			if got.create != c.want.create || got.over != c.want.over || got.reason != c.reason ||
				!strings.Contains(got.message, c.words) {
				t.Errorf("decided %+v", got)
			}
		})
	}
}

// While a backup is verified again, what was found before still holds.
func TestWhatWasFoundHoldsUntilTheNextHasEnded(t *testing.T) {
	backup := &v1.DatabaseBackup{}
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	ended := view{
		complete: true, asked: "a", job: jobEnded, result: &protocol.VerifyResult{LSN: "0/1", Recovery: 1, Commit: now},
	}
	backup.Status = status(backup, ended, decide(ended), now)
	if v := backup.Status.Verification; v.Asked != "a" || v.CompletedAt == nil || !v.LastTransactionAt.Time.Equal(now) {
		t.Errorf("the status is %+v", v)
	}
	next := view{complete: true, asked: "b", done: "a", job: jobRunning}
	backup.Status = status(backup, next, decide(next), now)
	c := meta.FindStatusCondition(backup.Status.Conditions, v1.ConditionVerified)
	if c.Status != metav1.ConditionTrue || c.Reason != v1.ReasonVerifying || backup.Status.Verification.Asked != "a" {
		t.Errorf("the condition is %+v, the status %+v", c, backup.Status.Verification)
	}
}

// A Pod restores in an init container, and runs SQL in the one after it. The last that has ended has the result.
func TestWhatTheContainersOfAPodSay(t *testing.T) {
	ended := func(name string, code int32, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
		}}
	}
	running := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}
	}
	waiting := corev1.ContainerStatus{Name: naming.ContainerVerify, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"},
	}}
	installed := ended(naming.ContainerInstall, 0, "")
	partial, whole := `{"lsn":"0/5000000"}`, `{"lsn":"0/6000000"}`
	for name, c := range map[string]struct {
		initial    []corev1.ContainerStatus
		main       corev1.ContainerStatus
		job        jobState
		words, lsn string
		problem    string
	}{
		"it restores": {
			[]corev1.ContainerStatus{installed, running(naming.ContainerRestore)}, waiting, jobRunning, "", "", "",
		},
		"the restore has failed": {
			[]corev1.ContainerStatus{installed, ended(naming.ContainerRestore, 1, `{"error":"base/b1 is missing"}`)},
			waiting, jobEnded, "is missing", "", "base/b1 is missing",
		},
		"the restore was killed": {
			[]corev1.ContainerStatus{installed, ended(naming.ContainerRestore, 137, "")}, waiting, jobEnded, "", "", "",
		},
		"it could not be installed": {
			[]corev1.ContainerStatus{ended(naming.ContainerInstall, 1, "no room")},
			waiting, jobEnded, "no room", "", "",
		},
		"it runs SQL": {[]corev1.ContainerStatus{installed, ended(naming.ContainerRestore, 0, partial)},
			running(naming.ContainerVerify), jobRunning, "runs the assertions", "", ""},
		"all is well": {[]corev1.ContainerStatus{installed, ended(naming.ContainerRestore, 0, partial)},
			ended(naming.ContainerVerify, 0, whole), jobEnded, "", "0/6000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{job: jobRunning}
			v.observePod(&corev1.Pod{Status: corev1.PodStatus{
				InitContainerStatuses: c.initial, ContainerStatuses: []corev1.ContainerStatus{c.main},
			}})
			if v.job != c.job || !strings.Contains(v.words, c.words) ||
				c.words == "" && v.job == jobRunning && v.words != "" {
				t.Errorf("the Job is %d, %q", v.job, v.words)
			}
			if c.lsn == "" && c.problem == "" {
				if v.result != nil {
					t.Errorf("the result is %+v", v.result)
				}
				return
			}
			if v.result == nil || v.result.LSN != c.lsn || v.result.Error != c.problem {
				t.Errorf("the result is %+v", v.result)
			}
		})
	}
}

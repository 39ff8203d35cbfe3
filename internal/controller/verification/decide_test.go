package verification

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
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
		"nobody asks":                       {view{complete: true, possible: true}, decision{}, "", ""},
		"it is not complete yet":            {view{asked: "a", possible: true}, decision{}, "", ""},
		"it was for that request":           {view{complete: true, possible: true, asked: "a", done: "a"}, decision{}, "", ""},
		"it is asked for":                   {view{complete: true, possible: true, asked: "a"}, decision{create: true}, v1.ReasonVerifying, "started"},
		"it is asked for again":             {view{complete: true, possible: true, asked: "b", done: "a"}, decision{create: true}, v1.ReasonVerifying, ""},
		"the SampleDB is gone":              {view{complete: true, asked: "a"}, decision{}, v1.ReasonVerifying, "waits for the SampleDB"},
		"its Pod runs":                      {view{complete: true, asked: "a", job: jobRunning, name: "j"}, decision{}, v1.ReasonVerifying, "Job j"},
		"its Pod has no node":               {view{complete: true, asked: "a", job: jobRunning, words: "no room"}, decision{}, v1.ReasonVerifying, "no room"},
		"all is well":                       {view{complete: true, asked: "a", job: jobEnded, result: good}, decision{over: true}, v1.ReasonVerified, "0/6000000 in 1m23.26s"},
		"an object is missing":              {view{complete: true, asked: "a", job: jobEnded, result: bad}, decision{over: true}, v1.ReasonVerificationFailed, "is missing"},
		"its Pod was killed without a word": {view{complete: true, asked: "a", job: jobEnded, name: "j"}, decision{over: true}, v1.ReasonVerificationFailed, "kubectl describe job j"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(c.view)
			if got.create != c.want.create || got.over != c.want.over || got.reason != c.reason || !strings.Contains(got.message, c.words) {
				t.Errorf("decided %+v", got)
			}
		})
	}
}

// While a backup is verified again, what was found before still holds.
func TestWhatWasFoundHoldsUntilTheNextHasEnded(t *testing.T) {
	backup := &v1.DatabaseBackup{}
	now := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	ended := view{complete: true, asked: "a", job: jobEnded, result: &protocol.VerifyResult{LSN: "0/1", Recovery: 1, Commit: now}}
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

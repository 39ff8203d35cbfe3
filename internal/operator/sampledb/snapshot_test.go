package sampledb

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// After the last backup the volumes are deleted: it counts only where it can be found.
func TestWhatTheLastBackupWaitsFor(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_800_000_000, 0))
	backup := func(status metav1.ConditionStatus, ended bool, id string) *v1.DatabaseBackup {
		b := &v1.DatabaseBackup{}
		b.Name, b.Status.ID, b.Status.Archive = "x-final-u", id, &v1.ArchiveReference{Path: "a"}
		if ended {
			b.Status.CompletedAt = &at
		}
		b.Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Status: status, Message: "words"}}
		return b
	}
	for name, c := range map[string]struct {
		backup *v1.DatabaseBackup
		want   string
	}{
		"it has not begun":                  {&v1.DatabaseBackup{}, "the last backup"},
		"it runs":                           {backup(metav1.ConditionFalse, false, ""), "x-final-u: words"},
		"it has failed":                     {backup(metav1.ConditionFalse, true, ""), "to have it tried again"},
		"it is complete":                    {backup(metav1.ConditionTrue, true, "20261120T031500Z-3f2a"), ""},
		"it is said to be, and has no name": {backup(metav1.ConditionTrue, true, ""), "nobody knows where it is"},
	} {
		if got := finalBackup(c.backup); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

package world

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// The agents see that the server of an archive does not answer; why, its Pod says.
func TestWhyTheServerOfAnArchiveDoesNotAnswer(t *testing.T) {
	away := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x-archive-a"}}
	away.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3",
	}}
	for reason, want := range map[string]string{
		"":                      "the WAL reaches the archive as it is written",
		v1.ReasonArchiveFailing: "connection refused; x-archive-a fits on no node: 0/3",
	} {
		state := &protocol.ArchiveStatus{Reason: reason, Error: "connection refused", LSN: "0/1"}
		s := actOf(Core{DB: &v1.SampleDB{}, Backup: &v1.BackupSpec{MaxLag: &metav1.Duration{}}, Seen: Observed{
			Answers: map[string]protocol.Status{
				"x-0": {Name: "x-0", Role: protocol.RolePrimary, Ready: true, Term: 1, Archive: state},
			},
			ArchivePods: []corev1.Pod{away},
		}})
		if got := s.Archiving(); got.Message != want {
			t.Errorf("%q: %+v", reason, got)
		}
	}
}

package archive

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// The first store was lost, or is another one by now, and the status has forgotten what was there. What is pinned there
// stays in the copy.
func TestWhatIsPinnedInAForgottenArchiveIsSpared(t *testing.T) {
	backup := func(id, path string, keep bool, complete metav1.ConditionStatus) v1.DatabaseBackup {
		b := v1.DatabaseBackup{Spec: v1.DatabaseBackupSpec{Keep: keep}}
		b.Status.Archive, b.Status.ID = &v1.ArchiveReference{Path: path}, id
		b.Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Status: complete}}
		return b
	}
	const path = "n/x-12345678"
	s := topicsOf(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x",
		UID: "12345678-9"}}})
	s.DB.Status.FirstVersion, s.Config = 16, protocol.Config{Major: 18, FirstMajor: 16}
	s.DB.Status.Backup = &v1.BackupStatus{Archive: path + "-pg18",
		Former: []v1.FormerArchive{{Path: path + "-pg17", Version: 17}}}
	s.Seen.Backups = []v1.DatabaseBackup{
		backup("known", path+"-pg17", true, metav1.ConditionTrue), backup("kept", path, true, metav1.ConditionTrue),
		backup("removed", path, true, metav1.ConditionFalse), backup("free", path, false, metav1.ConditionTrue),
		backup("another's", "n/y-87654321", true, metav1.ConditionTrue),
		backup("present", path+"-pg18", true, metav1.ConditionTrue),
	}
	got := s.former()
	if len(got) != 2 || got[0].Path != path+"-pg17" || got[0].Forgotten ||
		!slices.Equal(got[0].Pinned, []string{"known"}) {
		t.Fatalf("it knows of %+v", got)
	}
	if f := got[1]; f.Path != path || f.Version != 16 || !f.Forgotten ||
		!slices.Equal(f.Pinned, []string{"kept", "removed"}) {
		t.Errorf("it spares %+v", f)
	}
}

package sampledb

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// What the SampleDB has begun with is found wherever something is left of it.
func TestTheFirstMajorIsFoundAgain(t *testing.T) {
	backup := func(path, version string) v1.DatabaseBackup {
		b := v1.DatabaseBackup{}
		b.Status.Archive, b.Status.ServerVersion = &v1.ArchiveReference{Path: path}, version
		return b
	}
	for name, c := range map[string]struct {
		status  int32
		config  protocol.Config
		backups []v1.DatabaseBackup
		want    int
	}{
		"the status": {17, protocol.Config{Major: 18, FirstMajor: 16}, nil, 17},
		"the config": {0, protocol.Config{Major: 18, FirstMajor: 17}, nil, 17},
		"a backup":   {0, protocol.Config{}, []v1.DatabaseBackup{backup("n/x-12345678", "17.6")}, 17},
		"a backup of a later one": {
			0, protocol.Config{}, []v1.DatabaseBackup{backup("n/x-12345678-pg18", "18.1")}, 0,
		},
		"a backup of another":        {0, protocol.Config{}, []v1.DatabaseBackup{backup("n/x-87654321", "17.6")}, 0},
		"a config of before upgrade": {0, protocol.Config{Major: 17}, nil, 17},
		"nothing":                    {0, protocol.Config{}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOf(core{
				db: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "12345678-9"}},
			})
			s.db.Status.FirstVersion, s.seen.backups = c.status, c.backups
			if got := s.firstMajor(c.config); got != c.want {
				t.Errorf("it is %d, want %d", got, c.want)
			}
		})
	}
}

// An archive that never worked is no former one, and one that is gone back to has what it had.
func TestTurnOver(t *testing.T) {
	at := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	early, late := metav1.NewTime(at.Add(-48*time.Hour)), metav1.NewTime(at.Add(-time.Hour))
	was := v1.BackupStatus{
		Archive: "n/x", ArchivedLSN: "0/9", Latest: &late, Windows: []v1.RestoreWindow{{Branch: 1, Earliest: &early}},
	}
	turned := v1.FormerArchive{Path: "n/x", Version: 17}
	now := turnOver(was, v1.BackupStatus{Archive: "n/x-pg18", Version: 18}, turned, at)
	if len(now.Former) != 1 || !now.Former[0].Until.Equal(&metav1.Time{Time: at}) ||
		!now.Former[0].Windows[0].Latest.Equal(&late) || now.Former[0].Windows[0].LatestLSN != "0/9" ||
		now.Latest != nil {
		t.Fatalf("it is %+v", now)
	}
	left := v1.FormerArchive{Path: "n/x-pg18", Version: 18}
	back := turnOver(now, v1.BackupStatus{Archive: "n/x", Version: 17}, left, at)
	if len(back.Former) != 0 || len(back.Windows) != 1 || back.Windows[0].Latest != nil ||
		!back.Earliest.Equal(&early) {
		t.Errorf("taken back it is %+v", back)
	}
}

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
	s := scopeOf(core{db: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "12345678-9"}}})
	s.db.Status.FirstVersion, s.config = 16, protocol.Config{Major: 18, FirstMajor: 16}
	s.db.Status.Backup = &v1.BackupStatus{Archive: path + "-pg18",
		Former: []v1.FormerArchive{{Path: path + "-pg17", Version: 17}}}
	s.seen.backups = []v1.DatabaseBackup{
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

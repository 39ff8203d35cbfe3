package world

import (
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
			s := actOf(Core{
				DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "12345678-9"}},
			})
			s.DB.Status.FirstVersion, s.Seen.Backups = c.status, c.backups
			if got := s.FirstMajor(c.config); got != c.want {
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

package second

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

// copyScope is one with a second store, at noon, of which a Job has said something, nil for nothing.
func copyScope(on *v1.CopyStatus, said *protocol.CopyResult) *Topics {
	db := &v1.SampleDB{}
	db.Name, db.Namespace, db.UID = "x", "shop", "0b5c"
	db.Spec.Backup = &v1.BackupSpec{SecondStore: &v1.SecondStoreSpec{
		S3: &v1.SecondS3Store{Bucket: "copies", Credentials: v1.SecretReference{Name: "copier"}}}}
	s := New(worldtest.Act(world.Core{DB: db, Backup: db.Spec.Backup, Now: worldtest.At("2026-11-20 12:00:00")}))
	s.copied = said
	if on != nil {
		on.Place = "s3://copies/" + s.ArchivePath()
		db.Status.Backup = &v1.BackupStatus{Archive: s.ArchivePath(), Copy: on}
	}
	return s
}

func moment(text string) *metav1.Time {
	at := metav1.NewTime(worldtest.At(text))
	return &at
}

func TestWhatIsSaidOfACopy(t *testing.T) {
	recent, old := moment("2026-11-20 11:30:00"), moment("2026-11-20 10:30:00")
	now := worldtest.At("2026-11-20 11:50:00")
	whole := func(lost ...string) *protocol.CopyResult {
		return &protocol.CopyResult{Until: now, CheckedAt: now, LSN: "0/1", Lost: lost}
	}
	for name, c := range map[string]struct {
		on            *v1.CopyStatus
		said          *protocol.CopyResult
		reason, words string
	}{
		"nothing was copied yet": {nil, nil, v1.ReasonCopyStarting, "under way"},
		"it was copied":          {&v1.CopyStatus{Until: recent}, nil, v1.ReasonCopied, "s3://copies/"},
		"not for long":           {&v1.CopyStatus{Until: old}, nil, v1.ReasonCopyBehind, "2026-11-20T10:30:00Z"},
		"the second store refuses": {&v1.CopyStatus{Until: recent}, &protocol.CopyResult{Error: "denied"},
			v1.ReasonCopyFailing, "denied"},
		"an object could not be copied": {&v1.CopyStatus{Until: recent},
			&protocol.CopyResult{Problem: "it is broken", CheckedAt: now}, v1.ReasonCopyFailing, "broken"},
		"the archive has lost a backup":  {&v1.CopyStatus{Until: recent}, whole("b1"), v1.ReasonCopyAlone, "b1"},
		"one that retention has removed": {&v1.CopyStatus{Until: recent}, whole("gone"), v1.ReasonCopied, ""},
		"it is well again": {&v1.CopyStatus{Until: old, Problem: "denied", Alone: []string{"b1"}}, whole(),
			v1.ReasonCopied, ""},
		"it fails, and was lost before": {&v1.CopyStatus{Until: recent, Alone: []string{"b1"}},
			&protocol.CopyResult{Error: "away"}, v1.ReasonCopyFailing, "away"},
		"the copy can't be restored yet": {nil, &protocol.CopyResult{CheckedAt: now}, v1.ReasonCopyStarting, ""},
		"a Job runs, and the last failed": {&v1.CopyStatus{Until: recent, Problem: "denied"}, nil,
			v1.ReasonCopyFailing, "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := copyScope(c.on, c.said)
			removed := metav1.Condition{
				Type: v1.ConditionComplete, Status: metav1.ConditionFalse, Reason: v1.ReasonRemoved}
			s.Seen.Backups = []v1.DatabaseBackup{{Status: v1.DatabaseBackupStatus{
				ID: "gone", Conditions: []metav1.Condition{removed}}}}
			status := s.CopyStatus()
			got := s.IsCopied(&v1.BackupStatus{Copy: status})
			if (got.Status == metav1.ConditionTrue) != (c.reason == v1.ReasonCopied) ||
				got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
				t.Errorf("it says %+v", got)
			}
			if c.said != nil && c.said.Error != "" && c.on != nil && (!status.Until.Equal(c.on.Until) ||
				len(status.Alone) != len(c.on.Alone)) {
				t.Errorf("what was known before is forgotten: %+v", status)
			}
		})
	}
}

func TestWhileADatabaseIsStoppedItsCopyIsNoAlarm(t *testing.T) {
	s := copyScope(&v1.CopyStatus{Until: moment("2026-11-20 10:30:00"), Problem: "away"}, nil)
	s.Stop = &v1.StopStatus{Step: v1.StopStopped}
	if got := s.IsCopied(&v1.BackupStatus{Copy: s.CopyStatus()}); got.Reason != v1.ReasonCopyStopped {
		t.Errorf("it says %+v", got)
	}
}

func TestACopyInAnotherStoreBeginsAnew(t *testing.T) {
	s := copyScope(&v1.CopyStatus{Until: moment("2026-11-20 11:30:00"), LSN: "0/1"}, nil)
	s.DB.Spec.Backup.SecondStore.S3.Bucket = "another"
	if got := s.CopyStatus(); got.Until != nil || got.LSN != "" || !strings.HasPrefix(got.Place, "s3://another/") {
		t.Errorf("it says %+v", got)
	}
	s.DB.Spec.Backup.SecondStore = nil
	if got := s.CopyStatus(); got != nil || s.IsCopied(&v1.BackupStatus{Copy: got}) != (world.Verdict{}) {
		t.Errorf("without a second store it says %+v", got)
	}
}

func TestACopyThatCannotBeginSaysWhy(t *testing.T) {
	for _, on := range []*v1.CopyStatus{nil, {Until: moment("2026-11-20 10:30:00")}} {
		s := copyScope(on, nil)
		s.waits = "; Job x-second can't begin: no node"
		if got := s.IsCopied(&v1.BackupStatus{Copy: s.CopyStatus()}); !strings.HasSuffix(got.Message, s.waits) {
			t.Errorf("it says %+v", got)
		}
	}
}

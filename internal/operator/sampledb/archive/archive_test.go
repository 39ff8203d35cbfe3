package archive

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/sampledb/world"
)

// An archive goes on all the time. To write that into the status each time would be a write a minute for each SampleDB.
func TestTheStatusSaysHowFarTheArchiveIsNowAndThen(t *testing.T) {
	began := time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)
	status := func(lsn string, at time.Time, reason string) v1.SampleDBStatus {
		latest := metav1.NewTime(at)
		return v1.SampleDBStatus{
			Backup:     &v1.BackupStatus{ArchivedLSN: lsn, Latest: &latest, LagBytes: at.Unix() % 7},
			Conditions: []metav1.Condition{{Type: v1.ConditionArchiving, Reason: reason}},
		}
	}
	old := status("0/1000000", began, v1.ReasonArchiving)
	for name, c := range map[string]struct {
		after  time.Duration
		reason string
		want   string
	}{
		"a minute later":                   {time.Minute, v1.ReasonArchiving, "0/1000000"},
		"long after":                       {archiveNewsEvery, v1.ReasonArchiving, "0/2000000"},
		"a minute later it does not go on": {time.Minute, v1.ReasonArchiveFailing, "0/2000000"},
	} {
		at := began.Add(c.after)
		if got := ArchiveNews(old, status("0/2000000", at, c.reason), at); got.ArchivedLSN != c.want {
			t.Errorf("%s: %s, want %s", name, got.ArchivedLSN, c.want)
		}
	}
	backup := status("0/2000000", began.Add(time.Minute), v1.ReasonArchiving)
	backup.Backup.LastBackup = "x-1"
	if got := ArchiveNews(old, backup, began.Add(time.Minute)); got.LastBackup != "x-1" ||
		got.LagBytes != old.Backup.LagBytes {
		t.Errorf("a backup that is complete is told at once, and nothing else: %+v", got)
	}
	ended := metav1.NewTime(began.Add(30 * time.Second))
	backup.Backup.Earliest = &ended
	if got := ArchiveNews(old, backup, began.Add(time.Minute)); !got.Latest.After(ended.Time) {
		t.Errorf("the first backup ended at %s, and what can be restored ends at %s", ended, got.Latest)
	}
	if got := ArchiveNews(v1.SampleDBStatus{}, backup, began); got != backup.Backup {
		t.Errorf("the first time all is told: %+v", got)
	}
}

// Where nothing was written since a backup, the archive's last transaction is from before its end.
func TestAWindowDoesNotEndBeforeItBegins(t *testing.T) {
	early := metav1.NewTime(time.Date(2026, 11, 23, 18, 4, 0, 0, time.UTC))
	late := metav1.NewTime(early.Add(time.Second))
	for name, c := range map[string]struct{ latest, earliest, want *metav1.Time }{
		"nothing since the backup": {&early, &late, &late},
		"something since":          {&late, &early, &late},
		"no backup yet":            {&early, nil, &early},
		"nothing is known":         {nil, &early, nil},
	} {
		if got := latestAfter(c.latest, c.earliest); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestARetentionThatCannotBeginSaysWhy(t *testing.T) {
	s := topicsOf(world.Core{DB: &v1.SampleDB{}})
	now := metav1.Now()
	status := &v1.BackupStatus{LastBackupAt: &now}
	if got := s.RetentionApplied(status); got.Reason != v1.ReasonRetentionApplied {
		t.Errorf("nothing is wrong, and it says %+v", got)
	}
	s.retentionWaits = "Job x-retention can't begin: no node"
	if got := s.RetentionApplied(status); got.Reason != v1.ReasonRetentionFailing || got.Message != s.retentionWaits {
		t.Errorf("it says %+v", got)
	}
}

// A Job that no node has taken for a day is ended by its deadline: its Pod is gone then, and with it what it has
// waited for.
func TestARetentionThatWasEndedByItsDeadlineSaysSo(t *testing.T) {
	s := topicsOf(world.Core{DB: &v1.SampleDB{}})
	day := int64(24 * 60 * 60)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"},
		Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &day}}
	if got := s.whyNoRetention(jobs.Of(job, nil)); got != "" {
		t.Errorf("one that runs: %q", got)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
		Reason: batchv1.JobReasonDeadlineExceeded}}
	if got := s.whyNoRetention(jobs.Of(job, nil)); !strings.Contains(got, "Job x-retention was ended after 24h0m0s") {
		t.Errorf("one that was ended: %q", got)
	}
}

// A Pod that waits a moment for its node is no failure; what has failed for long does not come and go.
func TestARetentionThatWaitsForANode(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		since time.Duration
		was   string
		want  bool
	}{
		"it was made a moment ago":     {time.Minute, v1.ReasonRetentionApplied, false},
		"nothing was said before":      {time.Minute, "", false},
		"it waits for long":            {10 * time.Minute, v1.ReasonRetentionApplied, true},
		"the one before has failed":    {time.Minute, v1.ReasonRetentionFailing, true},
		"something was held back once": {time.Minute, v1.ReasonRetentionHeld, false},
	} {
		db := &v1.SampleDB{}
		if c.was != "" {
			db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionRetentionApplied, Reason: c.was}}
		}
		s := topicsOf(world.Core{DB: db, Now: now})
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-c.since))}}
		if got := s.waitsForLong(job); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

package archive

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
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
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}} // somebody may have taken its deadline away
	if got := s.whyNoRetention(jobs.Of(job, nil)); got != "" {
		t.Errorf("one that runs: %q", got)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue,
		Reason: batchv1.JobReasonDeadlineExceeded, Message: "Job was active longer than specified deadline"}}
	const want = "Job x-retention was ended without a result (Job was active longer than specified deadline)"
	if got := s.whyNoRetention(jobs.Of(job, nil)); !strings.HasPrefix(got, want) {
		t.Errorf("one that was ended: %q", got)
	}
}

// Between such a Job and the next one, which has said nothing yet, retention goes on failing: also in a store that is
// full, where it is made without credentials of its own, and is due whatever backups do.
func TestARetentionThatIsTriedAgainStillFails(t *testing.T) {
	for name, c := range map[string]struct {
		state *protocol.ArchiveStatus
		want  string
	}{
		"the store is full":     {&protocol.ArchiveStatus{Reason: protocol.ArchiveFull}, v1.ReasonRetentionFailing},
		"nobody says so now":    {nil, v1.ReasonRetentionFailing},
		"there is need no more": {&protocol.ArchiveStatus{}, v1.ReasonRetentionApplied},
	} {
		db := &v1.SampleDB{}
		db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionRetentionApplied,
			Status: metav1.ConditionFalse, Reason: v1.ReasonRetentionFailing, Message: "Job x-retention was ended"}}
		s := topicsOf(world.Core{DB: db, Now: time.Unix(1e9, 0)})
		if c.state != nil {
			primary := protocol.Status{Role: protocol.RolePrimary, Ready: true, Archive: c.state}
			s.Seen.Answers = map[string]protocol.Status{"x-0": primary}
		}
		next := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-retention",
			CreationTimestamp: metav1.NewTime(s.Now)}}
		s.retentionWaits = s.whyNoRetention(jobs.Of(next, nil))
		now := metav1.NewTime(s.Now)
		got := s.RetentionApplied(&v1.BackupStatus{LastBackupAt: &now})
		if got.Reason != c.want || c.want == v1.ReasonRetentionFailing && got.Message != "Job x-retention was ended" {
			t.Errorf("%s: it says %+v", name, got)
		}
	}
}

// removing notes what is deleted.
type removing struct {
	client.Client
	names []string
}

func (r *removing) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	r.names = append(r.names, o.GetName())
	return nil
}

// Releases before gave a Job of retention no deadline: one that no node takes is removed, and made anew.
func TestARetentionOfAnOlderReleaseDoesNotWaitForEver(t *testing.T) {
	now, day := time.Unix(1e9, 0), int64(24*60*60)
	for name, c := range map[string]struct {
		since    time.Duration
		deadline *int64
		ended    bool
		want     int
	}{
		"it waits for a day":        {24 * time.Hour, nil, false, 1},
		"it may still begin":        {23 * time.Hour, nil, false, 0},
		"it has ended":              {48 * time.Hour, nil, true, 0},
		"Kubernetes ends it itself": {48 * time.Hour, &day, false, 0},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
		s, yes := topicsOf(world.Core{DB: db, Now: now, Backup: &v1.BackupSpec{}}), true
		api := &removing{}
		s.Client = api
		job := batchv1.Job{Spec: batchv1.JobSpec{ActiveDeadlineSeconds: c.deadline}, ObjectMeta: metav1.ObjectMeta{
			Name: naming.RetentionJob("x"), CreationTimestamp: metav1.NewTime(now.Add(-c.since)),
			OwnerReferences: []metav1.OwnerReference{{Name: "x", UID: "u", Controller: &yes}},
		}}
		if c.ended {
			job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}
		s.Seen.Jobs = []batchv1.Job{job}
		if err := s.ApplyRetention(t.Context()); err != nil || len(api.names) != c.want {
			t.Errorf("%s: removed are %v, %v", name, api.names, err)
		}
	}
}

// A Pod that waits a moment for its node is no failure; what has failed for long does not come and go.
func TestARetentionThatWaitsForANode(t *testing.T) {
	now, yes := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), true
	refused := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/3 nodes are available"}}}
	for name, c := range map[string]struct {
		since  time.Duration
		was    string
		status *corev1.PodStatus // nil for no Pod
		want   string
	}{
		"it was made a moment ago":     {time.Minute, v1.ReasonRetentionApplied, &refused, ""},
		"nothing was said before":      {time.Minute, "", &refused, ""},
		"it waits for long":            {10 * time.Minute, v1.ReasonRetentionApplied, &refused, "0/3 nodes"},
		"the one before has failed":    {time.Minute, v1.ReasonRetentionFailing, &refused, "0/3 nodes"},
		"something was held back once": {time.Minute, v1.ReasonRetentionHeld, &refused, ""},
		"nobody says why": {10 * time.Minute, v1.ReasonRetentionApplied,
			&corev1.PodStatus{Phase: corev1.PodPending}, "kubectl describe pod p"},
		"its Pod is refused": {10 * time.Minute, v1.ReasonRetentionApplied, nil, "kubectl describe job x-retention"},
		"it has begun": {10 * time.Minute, v1.ReasonRetentionApplied,
			&corev1.PodStatus{Phase: corev1.PodRunning}, ""},
	} {
		db := &v1.SampleDB{}
		if c.was != "" {
			db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionRetentionApplied, Reason: c.was}}
		}
		s := topicsOf(world.Core{DB: db, Now: now})
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "x-retention", UID: "j",
			CreationTimestamp: metav1.NewTime(now.Add(-c.since))}}
		var all []corev1.Pod
		if c.status != nil {
			all = append(all, corev1.Pod{Status: *c.status, ObjectMeta: metav1.ObjectMeta{Name: "p",
				OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: &yes}}}})
		}
		got := s.whyNoRetention(jobs.Of(job, all))
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

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
	"toban.dev/internal/operator/sampledb/world"
)

// deleting notes how Jobs are deleted.
type deleting struct {
	client.Client
	how []metav1.DeletionPropagation
}

func (d *deleting) Delete(_ context.Context, _ client.Object, all ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(all)
	d.how = append(d.how, *options.PropagationPolicy)
	return nil
}

// A Job that no node takes held up every backup until its deadline. It goes after its Pods: one that only waits may
// start at any moment, and no backup begins beside one that removes.
func TestARetentionThatDoesNotBeginMakesWayForABackup(t *testing.T) {
	now, yes := time.Unix(1e9, 0), true
	waiting := func(reason string) v1.DatabaseBackup {
		return v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: v1.DatabaseBackupStatus{
			Conditions: []metav1.Condition{{Type: v1.ConditionComplete, Reason: reason}}}}
	}
	snapshot := waiting(v1.ReasonWaiting)
	ended := waiting(v1.ReasonWaiting)
	ended.Status.CompletedAt = &metav1.Time{Time: now}
	for name, c := range map[string]struct {
		backup    v1.DatabaseBackup
		snapshot  bool
		since     time.Duration
		phase     corev1.PodPhase // "-" for no Pod
		job       batchv1.JobStatus
		makesWay  bool
		nextAfter time.Duration // 0 for never
	}{
		"a backup waits": {waiting(v1.ReasonWaiting), false, 3 * time.Minute, corev1.PodPending, batchv1.JobStatus{},
			true, 7 * time.Minute},
		"one by a snapshot waits": {snapshot, true, 3 * time.Minute, corev1.PodPending, batchv1.JobStatus{},
			true, 7 * time.Minute},
		"its Pod is refused": {waiting(v1.ReasonWaiting), false, 3 * time.Minute, "-", batchv1.JobStatus{},
			true, 7 * time.Minute},
		"it waits for a day": {waiting(v1.ReasonWaiting), false, 20 * time.Hour, corev1.PodPending,
			batchv1.JobStatus{}, true, 0},
		"it may begin in a moment": {waiting(v1.ReasonWaiting), false, 2 * time.Minute, corev1.PodPending,
			batchv1.JobStatus{}, false, time.Minute},
		"it removes": {waiting(v1.ReasonWaiting), false, time.Hour, corev1.PodRunning, batchv1.JobStatus{}, false, 0},
		"nobody knows whether it removes": {waiting(v1.ReasonWaiting), false, time.Hour, corev1.PodUnknown,
			batchv1.JobStatus{}, false, 0},
		"its Job says that it has begun": {waiting(v1.ReasonWaiting), false, time.Hour, corev1.PodPending,
			batchv1.JobStatus{Ready: new(int32(1))}, false, 0},
		"it has ended": {waiting(v1.ReasonWaiting), false, time.Hour, corev1.PodPending, batchv1.JobStatus{
			Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}, false, 0},
		"the backup lacks room, which only it makes": {waiting(v1.ReasonArchiveNotReady), false, time.Hour,
			corev1.PodPending, batchv1.JobStatus{}, false, 0},
		"the backup is over": {ended, false, time.Hour, corev1.PodPending, batchv1.JobStatus{}, false, 0},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}
		s, api := topicsOf(world.Core{DB: db, Now: now, Backup: &v1.BackupSpec{}}), &deleting{}
		s.Client = api
		day := int64(24 * 60 * 60)
		s.Seen.Jobs = []batchv1.Job{{Status: c.job, Spec: batchv1.JobSpec{ActiveDeadlineSeconds: &day},
			ObjectMeta: metav1.ObjectMeta{Name: naming.RetentionJob("x"), UID: "j",
				CreationTimestamp: metav1.NewTime(now.Add(-c.since)),
				OwnerReferences:   []metav1.OwnerReference{{Name: "x", UID: "u", Controller: &yes}}}}}
		if c.phase != "-" {
			s.Seen.BackupPods = []corev1.Pod{{Status: corev1.PodStatus{Phase: c.phase}, ObjectMeta: metav1.ObjectMeta{
				Name: "p", OwnerReferences: []metav1.OwnerReference{{UID: "j", Controller: &yes}}}}}
		}
		if s.Seen.Backups = []v1.DatabaseBackup{c.backup}; c.snapshot {
			s.Seen.Backups, s.Seen.Snapshots = nil, s.Seen.Backups
		}
		if err := s.ApplyRetention(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(api.how) == 1 && api.how[0] == metav1.DeletePropagationForeground; got != c.makesWay {
			t.Errorf("%s: it is deleted so: %v", name, api.how)
		}
		if c.makesWay != strings.Contains(s.retentionWaits, "made way for the backup b") {
			t.Errorf("%s: it says %q", name, s.retentionWaits)
		}
		if got := s.RetentionApplied(&v1.BackupStatus{}); c.makesWay && got.Reason != v1.ReasonRetentionFailing {
			t.Errorf("%s: the condition is %+v", name, got)
		}
		next := time.Duration(0)
		if !s.RetentionNext.IsZero() {
			next = s.RetentionNext.Sub(now)
		}
		if next != c.nextAfter {
			t.Errorf("%s: it is looked at again after %s", name, next)
		}
	}
}

// A Job that has made way is made again after the backup, and not before it.
func TestABackupGoesBeforeARetentionThatCouldNotBegin(t *testing.T) {
	db := &v1.SampleDB{}
	s := topicsOf(world.Core{DB: db, Now: time.Unix(1e9, 0)})
	db.Status.Conditions = []metav1.Condition{{Type: v1.ConditionRetentionApplied, Reason: v1.ReasonRetentionFailing}}
	s.Seen.Backups = []v1.DatabaseBackup{{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	if s.backupFirst() {
		t.Error("a backup goes first that nobody has looked at yet")
	}
	s.Seen.Backups[0].Status.Conditions = []metav1.Condition{{Type: v1.ConditionComplete, Reason: v1.ReasonWaiting}}
	if !s.backupFirst() {
		t.Error("the backup does not go first")
	}
	db.Status.Conditions[0].Reason = v1.ReasonRetentionApplied
	if s.backupFirst() {
		t.Error("a backup goes before a retention that has not failed")
	}
}

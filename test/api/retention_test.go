package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Where a store is full no backup can begin, so a Job of its own removes what is not to be kept, again and again.
func TestAFullStoreHasRoomMade(t *testing.T) {
	k, db := newWorld(t).ready("x")
	first := &v1.DatabaseBackup{}
	k.read(k.backups()[0], first)
	if k.find("x-retention", &batchv1.Job{}) {
		t.Error("room is made in a store that is not full")
	}
	full := &protocol.ArchiveStatus{Reason: protocol.ArchiveFull, Error: "no space left"}
	db = k.archive(db, full)
	k.expect(db, v1.ConditionArchiving, metav1.ConditionFalse, v1.ReasonArchiveFull)
	job := &batchv1.Job{}
	k.read("x-retention", job)
	if c := job.Spec.Template.Spec.Containers[0]; !slices.Contains(c.Command, "retain") ||
		job.Spec.TTLSecondsAfterFinished == nil || !metav1.IsControlledBy(job, db) {
		t.Errorf("the Job is %+v, of %v", job.Spec, job.OwnerReferences)
	}
	// A backup waits until it has ended, and until there is room.
	pod := k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}}, "x-retention-a")
	second := k.ask("second", "x")
	k.expectComplete(second, metav1.ConditionFalse, v1.ReasonArchiveNotReady, "Pending")
	k.phase(pod, corev1.PodSucceeded, &protocol.BackupResult{Removed: []string{taken.ID}})
	db = k.reconcile(db)
	k.read(first.Name, first)
	k.expectComplete(first, metav1.ConditionFalse, v1.ReasonRemoved, "Removed")
	again := &batchv1.Job{}
	if k.read("x-retention", again); again.UID != job.UID {
		t.Error("it is done again at once")
	}
	// Kubernetes removes the Job some minutes later.
	k.must(k.api.Delete(k.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	k.must(client.IgnoreNotFound(k.api.Delete(k.Context(), pod)))
	db = k.reconcile(db)
	if k.read("x-retention", again); again.UID == job.UID {
		t.Error("it is not done again, and the store is still full")
	}
	k.must(k.api.Delete(k.Context(), again, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	state := works
	k.archive(db, &state)
	if k.find("x-retention", &batchv1.Job{}) {
		t.Error("room is made in a store that has some")
	}
	k.expectComplete(k.take(second), metav1.ConditionFalse, v1.ReasonRunning, "Running")
}

// A backup under way makes room itself; both at once would be in each other's way.
func TestNoRoomIsMadeBesideABackup(t *testing.T) {
	k, db := newWorld(t).ready("x")
	b := k.take(k.ask("second", "x"))
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	full := &protocol.ArchiveStatus{Reason: protocol.ArchiveFull, Error: "no space left"}
	db = k.archive(db, full)
	if k.find("x-retention", &batchv1.Job{}) {
		t.Error("room is made while a backup is under way")
	}
	k.phase(k.pod(b, "second-a"), corev1.PodFailed, &protocol.BackupResult{
		Error: "write base/b: no space left", Removed: []string{taken.ID},
	})
	k.failJob("second", "BackoffLimitExceeded")
	k.take(b)
	first := &v1.DatabaseBackup{}
	k.read(k.backups()[1], first)
	if first.Name == "second" {
		k.read(k.backups()[0], first)
	}
	k.expectComplete(first, metav1.ConditionFalse, v1.ReasonRemoved, "Removed")
	k.archive(db, full)
	if !k.find("x-retention", &batchv1.Job{}) {
		t.Error("no room is made after it")
	}
}

// The last backup of an encrypted archive is read with the key before anything goes; nobody else gets the key for that.
func TestTheLastBackupIsProvedWithTheKey(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, encryptedFor("age1"+strings.Repeat("q", 58)))
	other := &v1.DatabaseBackup{}
	k.read(k.backups()[1], other) // that of the change of the key
	other = k.take(other)
	if mounts, command := k.keyOf(other); mounts || slices.Contains(command, "--prove") {
		t.Errorf("a backup that is not the last mounts the key: %v, and runs %v", mounts, command)
	}
	k.complete(other)
	k.letGo()
	db = k.goes(db)
	b := k.take(k.final(db))
	if mounts, command := k.keyOf(b); !mounts || !slices.Contains(command, "--prove") {
		t.Errorf("the last backup mounts the key: %v, and runs %v", mounts, command)
	}
	wrong := &protocol.BackupResult{Error: "the key of the archive: another one"}
	k.phase(k.pod(b, "x-final-a"), corev1.PodFailed, wrong)
	k.failJob(b.Name, "BackoffLimitExceeded")
	k.take(b)
	db = k.reconcile(db)
	k.waiting(db, "the key of the archive: another one")
	k.waiting(db, "delete it to have it tried again")
}

// keyOf says whether the container that takes a backup gets the archive's key, and what it runs.
func (k *taker) keyOf(b *v1.DatabaseBackup) (mounts bool, command []string) {
	k.Helper()
	job := &batchv1.Job{}
	k.read(b.Name, job)
	takes := job.Spec.Template.Spec.Containers[0]
	mounts = slices.ContainsFunc(takes.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == naming.PathKey
	})
	return mounts, takes.Command
}

// Where the store has credentials of its own for deletion, a Job that alone has them removes what is not to be kept
// after each backup, and what it says counts.
func TestOneJobAloneRemovesAfterEachBackup(t *testing.T) {
	k, db := newWorld(t).ready("x", inBucket("archives"))
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Backup.Store.S3.DeletionCredentials = &v1.SecretReference{Name: "remover"}
	})
	job := &batchv1.Job{}
	k.read("x-retention", job) // after the first backup
	if got := secretsOf(job); !slices.Contains(got, "remover") || slices.Contains(got, "writer") {
		t.Errorf("the Job has the Secrets %v", got)
	}
	first := k.backups()[0]
	pod := k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}}, "x-retention-a")
	second := k.ask("second", "x")
	k.expectComplete(second, metav1.ConditionFalse, v1.ReasonWaiting, "Pending")
	k.phase(pod, corev1.PodSucceeded, &protocol.BackupResult{Removed: []string{taken.ID}, Refused: "it is locked"})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionFalse, v1.ReasonDeletionRefused)
	k.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
	one := &v1.DatabaseBackup{}
	k.read(first, one)
	k.expectComplete(one, metav1.ConditionFalse, v1.ReasonRemoved, "Removed")
	// Nothing was backed up since: there is no other when Kubernetes has removed it.
	k.removeJob(job, pod)
	db = k.reconcile(db)
	if k.find("x-retention", job) {
		t.Error("it is done again, though no backup has ended since")
	}
	second = k.take(second)
	made := &batchv1.Job{}
	k.read("second", made)
	if got := secretsOf(made); slices.Contains(got, "remover") || !slices.Contains(got, "writer") {
		t.Errorf("the Job of a backup has the Secrets %v", got)
	}
	db = k.reconcile(db)
	if k.find("x-retention", job) {
		t.Error("it is done beside a backup")
	}
	k.complete(second)
	db = k.reconcile(db)
	k.read("x-retention", job)
	pod = k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}}, "x-retention-b")
	k.phase(pod, corev1.PodFailed, &protocol.BackupResult{Error: "the Secret is not there"})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionFalse, v1.ReasonRetentionFailing)
	k.removeJob(job, pod)
	db = k.reconcile(db)
	again := &batchv1.Job{}
	if k.read("x-retention", again); again.UID == job.UID {
		t.Error("it is not tried again")
	}
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionFalse, v1.ReasonRetentionFailing)
	pod = k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}}, "x-retention-c")
	k.phase(pod, corev1.PodSucceeded, &protocol.BackupResult{Earliest: k.now})
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionTrue, v1.ReasonRetentionApplied)
	if b := db.Status.Backup; b.DeletionRefused != "" || b.LastRetentionAt == nil || b.Earliest == nil {
		t.Errorf("the status is %+v", b)
	}
}

// withStuckRetention is a SampleDB with a backup and a Job of retention that no node takes.
func withStuckRetention(t *testing.T) (k *taker, db *v1.SampleDB, job *batchv1.Job, pod *corev1.Pod) {
	t.Helper()
	k, db = newWorld(t).ready("x", inBucket("archives"))
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Backup.Store.S3.DeletionCredentials = &v1.SecretReference{Name: "remover"}
	})
	job = &batchv1.Job{}
	k.read("x-retention", job)
	pod = k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "x-retention"}}, "x-retention-a")
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
	k.phase(pod, corev1.PodPending, nil)
	return k, db, job, pod
}

// Nor does the last backup of a SampleDB that is being deleted wait for it.
func TestARetentionThatNoNodeTakesMakesWayForTheLastBackup(t *testing.T) {
	k, db, job, _ := withStuckRetention(t)
	k.letGo()
	db = k.goes(db)
	k.expectComplete(k.take(k.final(db)), metav1.ConditionFalse, v1.ReasonWaiting, "Pending")
	db = k.reconcile(db)
	if k.read("x-retention", job); job.DeletionTimestamp != nil {
		t.Error("it is removed at once")
	}
	k.now = k.now.Add(5 * time.Minute)
	k.reconcile(db)
	if k.read("x-retention", job); !slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Errorf("it does not go after its Pods: %+v", job.ObjectMeta)
	}
}

// A Job whose Pod no node takes would hold up every backup for as long as it may stay.
func TestARetentionThatNoNodeTakesMakesWay(t *testing.T) {
	k, db, job, pod := withStuckRetention(t)
	second := k.ask("second", "x")
	if said := k.expectComplete(second, metav1.ConditionFalse, v1.ReasonWaiting, "Pending"); !strings.Contains(said,
		"x-retention-a to end, which removes") {
		t.Errorf("the backup says %q", said)
	}
	db = k.reconcile(db)
	if k.read("x-retention", job); job.DeletionTimestamp != nil {
		t.Error("it is removed at once")
	}
	k.now = k.now.Add(5 * time.Minute)
	db = k.reconcile(db)
	k.read("x-retention", job)
	if !slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Errorf("it does not go after its Pods: %+v", job.ObjectMeta)
	}
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionFalse, v1.ReasonRetentionFailing)
	if said := k.drainEvents(); !strings.Contains(said, "made way for the backup second") ||
		!strings.Contains(said, "0/3 nodes are available") {
		t.Errorf("the events are %s", said)
	}
	second = k.take(second)
	k.expectComplete(second, metav1.ConditionFalse, v1.ReasonWaiting, "Pending")
	k.must(k.api.Delete(k.Context(), pod, client.GracePeriodSeconds(0)))
	second = k.take(second)
	if said := k.expectComplete(second, metav1.ConditionFalse, v1.ReasonWaiting, "Pending"); !strings.Contains(said,
		"Job x-retention to end") {
		t.Errorf("the backup says %q", said)
	}
	job.Finalizers = nil
	k.must(k.api.Update(k.Context(), job))
	db = k.reconcile(db)
	if k.find("x-retention", job) {
		t.Error("another one is made before the backup")
	}
	second = k.take(second)
	k.expectComplete(second, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	k.complete(second)
	db = k.reconcile(db)
	if !k.find("x-retention", job) {
		t.Error("none is made after the backup")
	}
	k.expect(db, v1.ConditionRetentionApplied, metav1.ConditionFalse, v1.ReasonRetentionFailing)
}

// removeJob has a Job go with its Pod, as Kubernetes does some minutes after its end.
func (k *taker) removeJob(job *batchv1.Job, pod *corev1.Pod) {
	k.Helper()
	k.must(k.api.Delete(k.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	k.must(client.IgnoreNotFound(k.api.Delete(k.Context(), pod)))
}

// secretsOf are the names of the Secrets that a Job's Pods mount.
func secretsOf(job *batchv1.Job) (names []string) {
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
	}
	return names
}

// Who has the instances' credentials must not be who may delete, or nothing is gained.
func TestCredentialsForDeletionAreOthers(t *testing.T) {
	w := newWorld(t)
	same := &v1.SecretReference{Name: "minio"}
	for field, store := range map[string]v1.StoreSpec{
		"s3":  {S3: &v1.S3Store{Bucket: "archives", Credentials: same, DeletionCredentials: same}},
		"gcs": {GCS: &v1.GCSStore{Bucket: "archives", Credentials: same, DeletionCredentials: same}},
		"azure": {Azure: &v1.AzureStore{
			Account: "account", Container: "archives", Credentials: same, DeletionCredentials: same,
		}},
	} {
		db := w.sampleDB("x-"+field, func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{Store: store} })
		err := w.api.Create(w.Context(), db)
		want := "backup.store: deletionCredentials must name another Secret than credentials, which the instances have"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

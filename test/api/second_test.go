package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/protocol"
)

// secondIn is a second store in a bucket of S3.
func secondIn(bucket string) *v1.SecondStoreSpec {
	return &v1.SecondStoreSpec{S3: &v1.SecondS3Store{Bucket: bucket, Credentials: v1.SecretReference{Name: "copier"}}}
}

func withSecond(bucket string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{SecondStore: secondIn(bucket)} }
}

func TestBadSecondStoresAreRefused(t *testing.T) {
	w := newWorld(t)
	s3 := func(bucket, secret string) *v1.S3Store {
		return &v1.S3Store{Bucket: bucket, Credentials: &v1.SecretReference{Name: secret}}
	}
	another := func(b *v1.BackupSpec) { b.Store.S3, b.SecondStore = s3("archives", "writer"), secondIn("copies") }
	for name, c := range map[string]struct {
		change func(*v1.BackupSpec)
		want   string
	}{
		"another bucket": {another, ""},
		"of the volume":  {func(b *v1.BackupSpec) { b.SecondStore = secondIn("copies") }, ""},
		"the same at another server": {func(b *v1.BackupSpec) {
			another(b)
			b.SecondStore.S3.Bucket, b.SecondStore.S3.Endpoint = "archives", "https://elsewhere.example.com"
		}, ""},
		"the same bucket": {func(b *v1.BackupSpec) { another(b); b.SecondStore.S3.Bucket = "archives" },
			"backup.secondStore must be another bucket than backup.store"},
		"the same bucket under another prefix": {func(b *v1.BackupSpec) {
			another(b)
			b.SecondStore.S3.Bucket, b.SecondStore.S3.Prefix = "archives", "copies"
		}, "backup.secondStore must be another bucket than backup.store"},
		"the same container": {func(b *v1.BackupSpec) {
			b.Store.Azure = &v1.AzureStore{Account: "shop", Container: "archives"}
			b.SecondStore = &v1.SecondStoreSpec{Azure: &v1.SecondAzureStore{Account: "shop", Container: "archives",
				Credentials: v1.SecretReference{Name: "copier"}}}
		}, "backup.secondStore must be another bucket than backup.store"},
		"the same bucket of Google": {func(b *v1.BackupSpec) {
			b.Store.GCS = &v1.GCSStore{Bucket: "archives"}
			b.SecondStore = &v1.SecondStoreSpec{GCS: &v1.SecondGCSStore{Bucket: "archives",
				Credentials: v1.SecretReference{Name: "copier"}}}
		}, "backup.secondStore must be another bucket than backup.store"},
		"the Secret that the instances have": {func(b *v1.BackupSpec) {
			another(b)
			b.SecondStore.S3.Credentials.Name = "writer"
		}, "and its credentials another Secret"},
		"nothing": {func(b *v1.BackupSpec) { b.SecondStore = &v1.SecondStoreSpec{} },
			"backup.secondStore must have exactly one of s3, gcs and azure"},
		"two": {func(b *v1.BackupSpec) {
			another(b)
			b.SecondStore.GCS = &v1.SecondGCSStore{Bucket: "copies", Credentials: v1.SecretReference{Name: "copier"}}
		}, "backup.secondStore must have exactly one of s3, gcs and azure"},
		"without a first one": {func(b *v1.BackupSpec) { b.None, b.SecondStore = true, secondIn("copies") },
			"backup.none: true means no archive and no backups"},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("x", func(db *v1.SampleDB) {
				db.Spec.Backup = &v1.BackupSpec{}
				c.change(db.Spec.Backup)
			})
			err := w.api.Create(w.Context(), db, client.DryRunAll)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// copyJob is the Job that copies the archive of a SampleDB.
func (w *world) copyJob(db *v1.SampleDB) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{}
	w.read(desired.CopyJobName(db), job)
	return job
}

// copySays ends the Pod of such a Job, which leaves a result, and removes both as Kubernetes does some minutes later.
func (k *taker) copySays(db *v1.SampleDB, result protocol.CopyResult) *v1.SampleDB {
	k.Helper()
	job := k.copyJob(db)
	pod := k.pod(&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: job.Name}}, job.Name+"-a")
	text, err := json.Marshal(result)
	k.must(err)
	phase, code := corev1.PodSucceeded, int32(0)
	if result.Error != "" {
		phase, code = corev1.PodFailed, 1
	}
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerSecond, Image: "x", ImageID: "x",
		State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text)},
		},
	}}
	k.must(k.api.Status().Update(k.Context(), pod))
	if result.Error != "" {
		k.failJob(job.Name, "BackoffLimitExceeded")
	}
	db = k.reconcile(db)
	k.must(k.api.Delete(k.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	k.must(client.IgnoreNotFound(k.api.Delete(k.Context(), pod)))
	return db
}

// instancesHave says that a Secret is in the Pods of the instances.
func (w *world) instancesHave(name, secret string) bool {
	set := &appsv1.StatefulSet{}
	w.read(name, set)
	return slices.ContainsFunc(set.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == secret
	})
}

// The archive is copied again and again by a Job, and the condition says how far that is.
func TestAnArchiveIsCopiedIntoTheSecondStore(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	db := w.started("x", withSecond("copies"))
	if w.find(desired.CopyJobName(db), &batchv1.Job{}) {
		t.Error("there is a Job before there is anything to copy")
	}
	w.expect(db, v1.ConditionCopied, metav1.ConditionFalse, v1.ReasonCopyStarting)
	state := works
	db = w.reconcile(w.archive(db, &state))
	job := w.copyJob(db)
	if !metav1.IsControlledBy(job, db) || job.Spec.TTLSecondsAfterFinished == nil {
		t.Errorf("the Job is %+v of %v", job.Spec, job.OwnerReferences)
	}
	if w.instancesHave("x", "copier") {
		t.Error("the instances have the credentials of the second store")
	}
	until := w.now.UTC().Truncate(time.Second)
	good := protocol.CopyResult{Until: until, CheckedAt: until, LSN: "0/5000000", Objects: 3, Bytes: 99}
	db = k.copySays(db, good)
	w.expect(db, v1.ConditionCopied, metav1.ConditionTrue, v1.ReasonCopied)
	c := db.Status.Backup.Copy
	if c == nil || !c.Until.Time.Equal(until) || c.LSN != "0/5000000" || c.Objects != 3 ||
		!strings.HasPrefix(c.Place, "s3://copies/"+w.namespace+"/x-") {
		t.Errorf("the status says %+v", c)
	}
	w.writes.take()
	db = w.reconcile(db)
	if again := w.copyJob(db); again.UID == job.UID {
		t.Error("it is not copied again when the Job has gone")
	}
	// It goes on to work, and then no run ends for more than an hour.
	w.now = w.now.Add(2 * time.Hour)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionCopied, metav1.ConditionFalse, v1.ReasonCopyBehind)
	good.Until = w.now.UTC().Truncate(time.Second)
	good.Lost = []string{"20261120T031500Z-3f2a"}
	db = k.copySays(db, good)
	if words := w.expect(db, v1.ConditionCopied, metav1.ConditionFalse, v1.ReasonCopyAlone); !strings.Contains(words,
		"20261120T031500Z-3f2a") {
		t.Errorf("it says %q", words)
	}
	// Another second store is another copy; without one nothing is said, and nothing copied.
	db = w.reconcile(db)
	old := w.copyJob(db)
	db = w.reconcile(w.edit(db, func(db *v1.SampleDB) { db.Spec.Backup.SecondStore = secondIn("others") }))
	w.expect(db, v1.ConditionCopied, metav1.ConditionFalse, v1.ReasonCopyStarting)
	if w.find(old.Name, &batchv1.Job{}) || w.copyJob(db).Name == old.Name {
		t.Error("the Job of the former second store goes on")
	}
	db = w.reconcile(w.edit(db, func(db *v1.SampleDB) { db.Spec.Backup.SecondStore = nil }))
	if db.Status.Backup.Copy != nil || meta.FindStatusCondition(db.Status.Conditions, v1.ConditionCopied) != nil {
		t.Errorf("without a second store the status says %+v", db.Status.Backup.Copy)
	}
}

// A second store that refuses is told, and keeps neither the archive nor backups nor the database waiting.
func TestASecondStoreThatRefusesKeepsNothingElseWaiting(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	state := works
	db := w.reconcile(w.archive(w.started("x", withSecond("copies")), &state))
	db = k.copySays(db, protocol.CopyResult{Error: "write to the second store: access denied"})
	if words := w.expect(db, v1.ConditionCopied, metav1.ConditionFalse, v1.ReasonCopyFailing); !strings.Contains(words,
		"access denied") {
		t.Errorf("it says %q", words)
	}
	if told := w.drainEvents(); !strings.Contains(told, "NotCopied") {
		t.Errorf("the events are %s", told)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
	first := w.backup(w.backups()[0])
	k.complete(first)
	db = w.reconcile(db)
	if db.Status.Backup.LastBackup != first.Name {
		t.Errorf("the last backup is %q", db.Status.Backup.LastBackup)
	}
	until := w.now.UTC().Truncate(time.Second)
	db = k.copySays(w.reconcile(db), protocol.CopyResult{Until: until, CheckedAt: until, LSN: "0/5000000"})
	w.expect(db, v1.ConditionCopied, metav1.ConditionTrue, v1.ReasonCopied)
}

// No more are copied at once than the operator allows, and who waits for longer is first.
func TestNoMoreArchivesAreCopiedThanTheOperatorAllows(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	w.reconciler.Copies = &limits.Places{Client: client.NewNamespacedClient(labelled{w.api}, w.namespace), Limit: 1,
		Component: naming.ComponentSecond, Owner: "SampleDB"}
	state := works
	first := w.reconcile(w.archive(w.started("x", withSecond("copies")), &state))
	second := w.reconcile(w.archive(w.started("y", withSecond("copies")), &state))
	w.copyJob(first)
	if w.find(desired.CopyJobName(second), &batchv1.Job{}) {
		t.Fatal("both are copied at once")
	}
	until := w.now.UTC().Truncate(time.Second)
	first = k.copySays(first, protocol.CopyResult{Until: until, CheckedAt: until, LSN: "0/5000000"})
	first = w.reconcile(first)
	if w.find(desired.CopyJobName(first), &batchv1.Job{}) {
		t.Error("the first one is copied again, before the one that waits")
	}
	second = w.reconcile(second)
	w.copyJob(second)
}

package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// replaying answers for Pods that replay WAL.
type replaying struct{}

func (replaying) Progress(context.Context, string, string, protocol.Config) (protocol.BackupProgress, error) {
	return protocol.BackupProgress{Step: "replays WAL", Done: 30, Total: 60, Rate: 10, Backup: taken.ID}, nil
}

func from(spec v1.RestoreSpec) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.RestoreFrom = &spec }
}

// restoreJob is the one of a SampleDB.
func (w *world) restoreJob(db *v1.SampleDB) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{}
	w.read(desired.FirstRestore(db).JobName(db), job)
	return job
}

// restorePod makes a Pod of a restore's Job; with a result it has ended and left that.
func (w *world) restorePod(job *batchv1.Job, name string, result *protocol.RestoreResult) *corev1.Pod {
	w.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = w.namespace, name
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	}
	w.must(w.api.Create(w.Context(), pod))
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, "10.9.0.2",
		[]corev1.PodIP{{IP: "10.9.0.2"}}
	w.must(w.api.Status().Update(w.Context(), pod))
	if result != nil {
		w.endRestore(pod, *result)
	}
	return pod
}

func (w *world) endRestore(pod *corev1.Pod, result protocol.RestoreResult) {
	w.Helper()
	text, err := json.Marshal(result)
	w.must(err)
	phase, code := corev1.PodSucceeded, int32(0)
	if result.Error != "" {
		phase, code = corev1.PodFailed, 1
	}
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: naming.ContainerRestore, Image: "x", ImageID: "x",
		State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text)},
		}}}
	w.must(w.api.Status().Update(w.Context(), pod))
}

// hasMount says whether a Pod mounts something at a path.
func hasMount(pod corev1.PodSpec, path string) bool {
	return slices.ContainsFunc(pod.Containers[0].VolumeMounts,
		func(m corev1.VolumeMount) bool { return m.MountPath == path })
}

var backRestored = protocol.RestoreResult{
	Backup: taken.ID, LSN: "0/6000000", Commit: time.Date(2026, 11, 20, 3, 14, 0, 0, time.UTC),
}

func TestANewSampleDBBeginsWithABackup(t *testing.T) {
	k, source := newWorld(t).ready("x")
	b := k.ask("x-1", source.Name)
	k.phase(k.pod(b, "x-1-a"), corev1.PodSucceeded, &taken)
	b = k.take(b)

	db := k.create("again", from(v1.RestoreSpec{Backup: "nothing"}), archived)
	k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoreSourceNotFound)
	if db.Status.Phase != "Blocked" {
		t.Errorf("the phase is %s", db.Status.Phase)
	}
	db = k.edit(db, from(v1.RestoreSpec{Backup: b.Name}))
	k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoring)
	k.read("again-restore", &networkingv1.NetworkPolicy{})
	k.checkRestoreSettings(b)
	job := k.restoreJob(db)
	if pod := job.Spec.Template.Spec; !hasMount(pod, naming.PathVolume) || !hasMount(pod, naming.PathSource) ||
		hasMount(pod, naming.PathArchive) {
		t.Errorf("it mounts %+v", pod.Containers[0].VolumeMounts)
	}
	pod := k.restorePod(job, "y-restore-a", nil)
	db = k.reconcile(db)
	words := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoring)
	if words != "replays WAL" || db.Status.Restore.Progress.Percent != 50 || db.Status.Phase != "Restoring" {
		t.Errorf("it is %s: %q, %+v", db.Status.Phase, words, db.Status.Restore.Progress)
	}
	if k.find("again", &appsv1.StatefulSet{}) {
		t.Fatal("there are instances before the data is there")
	}
	k.endRestore(pod, backRestored)
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	if r := db.Status.Restore; r.CompletedAt == nil || r.LSN != "0/6000000" ||
		r.LastTransactionAt == nil || r.Progress != nil {
		t.Errorf("the status is %+v", r)
	}
	for range 4 {
		k.playCluster(db)
		db = k.reconcile(db)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	k.must(k.api.Delete(k.Context(), job))
	k.checkRestoreFromIsOver(db)
}

// checkRestoreFromIsOver: it may be removed, which changes nothing, and not be set again.
func (k *taker) checkRestoreFromIsOver(db *v1.SampleDB) {
	k.Helper()
	changed := db.DeepCopy()
	changed.Spec.RestoreFrom.Backup = "other"
	if err := k.api.Update(k.Context(), changed); err == nil || !strings.Contains(err.Error(), "has its data already") {
		k.Errorf("another restoreFrom: %v", err)
	}
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.RestoreFrom = nil })
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if db.Status.Restore == nil {
		k.Error("what it has begun with is forgotten")
	}
}

// checkRestoreSettings checks what the Pod is told that restores a backup of x into again.
func (k *taker) checkRestoreSettings(b *v1.DatabaseBackup) {
	k.Helper()
	settings := &corev1.ConfigMap{}
	k.read("again-restore", settings)
	var told protocol.RestoreSettings
	k.must(json.Unmarshal([]byte(settings.Data[naming.KeyRestore]), &told))
	if told.Backup != taken.ID ||
		!told.Target.Immediate || told.Path != b.Status.Archive.Path || told.Instance != "again-0" ||
		told.Bucket.Volume == nil || !strings.Contains(told.Bucket.Volume.URL, "x-archive.") {
		k.Errorf("the Pod is told %+v", told)
	}
}

func TestWhatARestoreReadsFrom(t *testing.T) {
	k, source := newWorld(t).ready("x")
	for name, c := range map[string]struct {
		db     string
		spec   v1.RestoreSpec
		reason string
		mounts string
	}{
		"another SampleDB": {
			"other", v1.RestoreSpec{SampleDB: "x", Target: &v1.RestoreTarget{Time: "2026-11-20T03:15:00.5+09:00"}},
			v1.ReasonRestoring, naming.PathSource,
		},
		"itself":                {"itself", v1.RestoreSpec{SampleDB: "itself"}, v1.ReasonRestoreSourceNotFound, ""},
		"one that is not there": {"nowhere", v1.RestoreSpec{SampleDB: "nobody"}, v1.ReasonRestoreSourceNotFound, ""},
		"a volume without a claim": {
			"claimless", v1.RestoreSpec{Archive: &v1.ArchiveReference{Path: "n/x-1"}},
			v1.ReasonRestoreSourceNotFound, "",
		},
		"a claim that is not there": {
			"unclaimed", v1.RestoreSpec{Archive: &v1.ArchiveReference{Path: "n/x-1", Claim: "gone-archive"}},
			v1.ReasonRestoreSourceNotFound, "",
		},
		"an encrypted bucket": {"secret", v1.RestoreSpec{Archive: &v1.ArchiveReference{Path: "n/x-1",
			Store: v1.StoreSpec{S3: &v1.S3Store{Bucket: "backups", Credentials: &v1.SecretReference{Name: "s3-key"}}},
			Encryption: &v1.EncryptionSpec{
				Recipient: "age1" + strings.Repeat("q", 58), Key: v1.SecretReference{Name: "age-key"},
			}}}, v1.ReasonRestoring, naming.PathKey},
	} {
		t.Run(name, func(t *testing.T) {
			db := k.create(c.db, from(c.spec))
			k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, c.reason)
			if c.mounts != "" && !hasMount(k.restoreJob(db).Spec.Template.Spec, c.mounts) {
				t.Errorf("nothing is mounted at %s", c.mounts)
			}
		})
	}
	// Of a SampleDB that is gone the volume is mounted.
	source = k.edit(source, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionDelete })
	k.goes(source)
	k.gone(source)
	db := k.create("after", from(v1.RestoreSpec{Archive: &v1.ArchiveReference{Path: "n/x-1", Claim: "x-archive"}}))
	if pod := k.restoreJob(db).Spec.Template.Spec; !hasMount(pod, naming.PathArchive) ||
		hasMount(pod, naming.PathSource) {
		t.Errorf("it mounts %+v", pod.Containers[0].VolumeMounts)
	}
}

func TestARestoreThatFailsIsTriedAgainAndCanBeMended(t *testing.T) {
	k, _ := newWorld(t).ready("x")
	db := k.create("again", from(v1.RestoreSpec{SampleDB: "x"}))
	job := k.restoreJob(db)
	k.restorePod(job, "y-restore-a", &protocol.RestoreResult{Error: "base/b1/base.tar.00001.zst is missing"})
	db = k.reconcile(db)
	if words := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoring); !strings.Contains(words,
		"00001.zst is missing") {
		t.Errorf("it says %q", words)
	}
	(&taker{world: k.world}).failJob(job.Name, batchv1.JobReasonPodFailurePolicy)
	db = k.reconcile(db)
	if words := k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoreFailed); !strings.Contains(words,
		"00001.zst is missing") {
		t.Errorf("it says %q", words)
	}
	k.now = time.Now().Add(restoreRetryInTests)
	db = k.reconcile(db)
	if k.find(job.Name, &batchv1.Job{}) {
		t.Fatal("it is not tried again")
	}
	db = k.reconcile(db)
	// Each try downloads all again, so the next one is later.
	job = k.restoreJob(db)
	k.restorePod(job, "y-restore-a2", &protocol.RestoreResult{Error: "base/b1/base.tar.00001.zst is missing"})
	(&taker{world: k.world}).failLater(job.Name, k.now)
	failed := k.now
	db = k.reconcile(db)
	k.now = failed.Add(restoreRetryInTests)
	db = k.reconcile(db)
	if words := k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoreFailed); !strings.Contains(words,
		"failures: 2; tried again at "+failed.Add(10*time.Minute).UTC().Format(time.RFC3339)) {
		t.Errorf("it says %q", words)
	}
	if r := db.Status.Restore; r.Failures != 2 || r.Job != job.Name {
		t.Errorf("the status has %+v", r)
	}
	k.now = failed.Add(2 * restoreRetryInTests)
	if db = k.reconcile(db); k.find(job.Name, &batchv1.Job{}) {
		t.Fatal("it is not tried again")
	}
	db = k.reconcile(db)
	k.restoreJob(db)
	// Another target is another Job, and the former goes with its Pods first.
	pod := k.restorePod(k.restoreJob(db), "y-restore-b", nil)
	before := desired.FirstRestore(db).JobName(db)
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.RestoreFrom.Target = &v1.RestoreTarget{LSN: "0/6000000"} })
	if k.find(before, &batchv1.Job{}) || k.find(desired.FirstRestore(db).JobName(db), &batchv1.Job{}) {
		t.Error("two Jobs could write to one volume")
	}
	k.must(k.api.Delete(k.Context(), pod))
	db = k.reconcile(db)
	k.restoreJob(db)
	if r := db.Status.Restore; r.Failures != 0 || r.FailedAt != nil {
		t.Errorf("what was mended has failed before: %+v", r)
	}
	// Without restoreFrom it begins empty, once nobody uses the volume.
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.RestoreFrom = nil })
	for range 4 {
		k.playCluster(db)
		db = k.reconcile(db)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// restoreRetryInTests is longer than the operator waits before it tries again.
const restoreRetryInTests = 6 * time.Minute

func TestWhatAUserCanGetWrongAboutARestore(t *testing.T) {
	w := newWorld(t)
	for words, spec := range map[string]v1.RestoreSpec{
		"exactly one of backup, sampleDB and archive": {Backup: "a", SampleDB: "b"},
		"exactly one of time, lsn, transaction": {
			SampleDB: "b", Target: &v1.RestoreTarget{Name: "a", LSN: "0/1"},
		},
		"does not go with name": {SampleDB: "b", Target: &v1.RestoreTarget{Name: "a", Exclusive: true}},
		"target.time":           {SampleDB: "b", Target: &v1.RestoreTarget{Time: "yesterday"}},
		"target.lsn":            {SampleDB: "b", Target: &v1.RestoreTarget{LSN: "16"}},
	} {
		if err := w.api.Create(w.Context(), w.sampleDB("y", from(spec))); err == nil ||
			!strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v, want %q", spec, err, words)
		}
	}
	db := w.started("z")
	db.Spec.RestoreFrom = &v1.RestoreSpec{Backup: "a"}
	if err := w.api.Update(w.Context(), db); err == nil || !strings.Contains(err.Error(), "has its data already") {
		t.Errorf("a database that is there is to be restored: %v", err)
	}
}

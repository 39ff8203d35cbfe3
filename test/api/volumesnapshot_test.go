package api

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/protocol"
)

// cutter notes which sessions were told that their snapshot is cut.
type cutter struct{ told []string }

func (c *cutter) Cut(_ context.Context, _ string, _ protocol.Config, cut protocol.Cut) error {
	c.told = append(c.told, cut.Session)
	return nil
}

func bySnapshot(class string) func(*v1.DatabaseBackup) {
	return func(b *v1.DatabaseBackup) {
		b.Spec.Method, b.Spec.VolumeSnapshotClassName = v1.MethodVolumeSnapshot, class
	}
}

// snapshotResult is what the Pod of such a backup leaves.
func snapshotResult(session string) *protocol.BackupResult {
	return &protocol.BackupResult{
		Instance: "x-0", StartLSN: "0/4000028", StopLSN: "0/4000100", ServerVersion: "17.6",
		SystemIdentifier: identifier,
		Snapshot: &protocol.Snapshot{
			ID: session, Label: "START WAL LOCATION: 0/4000028\n", Term: 1, Timeline: 1, StartLSN: "0/4000028",
			StopLSN: "0/4000100", Stopped: time.Date(2026, 11, 20, 3, 15, 1, 0, time.UTC),
			ServerVersion: "17.6", SystemIdentifier: identifier,
		},
	}
}

const session, laterSession = "20261120T031500Z-3f2a", "20261120T032000Z-0001"

// installSnapshots installs the kind as external-snapshotter does. What plays its controller and a CSI driver is say.
func (w *world) installSnapshots() {
	w.Helper()
	options := envtest.CRDInstallOptions{
		Paths: []string{filepath.Join("testdata", "volumesnapshots.yaml")}, ErrorIfPathMissing: true,
	}
	_, err := envtest.InstallCRDs(server, options)
	w.must(err)
	w.Cleanup(func() { w.must(envtest.UninstallCRDs(server, options)) })
}

func (w *world) snapshot(name string) *unstructured.Unstructured {
	w.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(volumes.VolumeSnapshotKind)
	err := w.api.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, out)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return out
}

// say sets the status of a VolumeSnapshot.
func (w *world) say(name string, status map[string]any) {
	w.Helper()
	s := w.snapshot(name)
	if s == nil {
		w.Fatalf("there is no VolumeSnapshot %s", name)
	}
	s.Object["status"] = status
	w.must(w.api.Status().Update(w.Context(), s))
}

// A backup by a snapshot waits until the cluster has such a thing, then for the session, the cut and the driver, and
// retention spares its WAL. A new SampleDB of it has a volume that is made of it, and no other. It is one test, because
// the kind is there or not for all tests.
func TestABackupIsASnapshotOfTheVolume(t *testing.T) {
	w := newWorld(t)
	k, source := w.ready("x")
	k.cuts = &cutter{}
	source = w.reconcile(source)
	last := source.Status.Backup.LastBackup
	b := k.ask("x-cut", source.Name, bySnapshot("fast"))
	words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonSnapshotAPIMissing, "Pending")
	if !strings.Contains(words, "external-snapshotter") || w.find(b.Name, &batchv1.Job{}) {
		t.Errorf("without the kind it says %q", words)
	}
	w.installSnapshots()
	w.until("the kind is not found", func() bool {
		b = k.take(b)
		return w.find(b.Name, &batchv1.Job{})
	})
	first := w.cutIn(k, b)
	b = w.ends(k, b, first)
	source = w.sparesWAL(source, last)
	w.beginsWith(b)
	w.spoilsNoVolume(b)
	w.endsEarly(k)
	w.must(w.api.Delete(t.Context(), b))
	w.reconcile(source)
	if len(w.backupSettings("x").Keep.Snapshots) > 0 {
		t.Error("retention spares the WAL of a snapshot that is gone with its DatabaseBackup")
	}
}

// cutIn plays a session that is lost and another, and returns the Pod of the latter.
func (w *world) cutIn(k *taker, b *v1.DatabaseBackup) *corev1.Pod {
	w.Helper()
	pod := k.pod(b, "x-cut-a")
	if !strings.Contains(strings.Join(pod.Spec.Containers[0].Command, " "), "--"+naming.FlagSnapshot) {
		w.Errorf("the Pod is told %v", pod.Spec.Containers[0].Command)
	}
	k.pods.progress = &protocol.BackupProgress{Instance: "x-0", Step: "begins a backup"}
	k.take(b)
	k.pods.progress.Session = session
	k.take(b)
	name := naming.VolumeSnapshot(b.Name, session)
	s := w.snapshot(name)
	if s == nil {
		w.Fatal("there is no VolumeSnapshot of the session")
	}
	claim, _, _ := unstructured.NestedString(s.Object, "spec", "source", "persistentVolumeClaimName")
	class, _, _ := unstructured.NestedString(s.Object, "spec", "volumeSnapshotClassName")
	if claim != "data-x-0" || class != "fast" || !metav1.IsControlledBy(s, b) {
		w.Errorf("it is of %s in %s, of %v", claim, class, s.GetOwnerReferences())
	}
	w.say(name, map[string]any{"error": map[string]any{"message": "class fast is of another driver"}})
	words := k.expectComplete(k.take(b), metav1.ConditionFalse, v1.ReasonRunning, "Running")
	if !strings.Contains(words, "class fast is of another driver") {
		w.Errorf("what the driver says is not told: %q", words)
	}
	// The session is lost: another Pod has another one, and what was cut for the former is of no use.
	w.say(name, map[string]any{"creationTime": "2026-11-20T03:15:01Z", "readyToUse": true})
	k.pods.progress.Session = laterSession
	k.take(b)
	later := naming.VolumeSnapshot(b.Name, laterSession)
	if w.snapshot(name) != nil || w.snapshot(later) == nil || len(k.cuts.told) > 0 {
		w.Errorf("told are %v; former: %v", k.cuts.told, w.snapshot(name) != nil)
	}
	w.say(later, map[string]any{"creationTime": "2026-11-20T03:20:01Z", "readyToUse": false})
	k.take(b)
	if strings.Join(k.cuts.told, " ") != laterSession {
		w.Errorf("told are %v", k.cuts.told)
	}
	return pod
}

// ends plays the end of a backup.
func (w *world) ends(k *taker, b *v1.DatabaseBackup, pod *corev1.Pod) *v1.DatabaseBackup {
	w.Helper()
	k.pods.progress = nil
	k.phase(pod, corev1.PodSucceeded, snapshotResult(laterSession))
	job := &batchv1.Job{}
	k.read(b.Name, job)
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
	}
	k.must(k.api.Status().Update(k.Context(), job))
	b = k.take(b)
	words := k.expectComplete(b, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	if !strings.Contains(words, "until it can be used") || b.Status.Snapshot == nil {
		w.Errorf("before it can be used it says %q, of %+v", words, b.Status.Snapshot)
	}
	name := naming.VolumeSnapshot(b.Name, laterSession)
	w.say(name, map[string]any{"creationTime": "2026-11-20T03:20:01Z", "readyToUse": true, "restoreSize": "20Gi"})
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	if s := b.Status.Snapshot; s == nil || s.Name != name || s.Size != "20Gi" || s.BackupLabel == "" ||
		b.Status.ID != "" || b.Status.Type != v1.BackupSnapshot || b.Status.StopLSN != "0/4000100" {
		w.Errorf("the status is %+v", b.Status)
	}
	return b
}

func (w *world) backupSettings(db string) protocol.BackupSettings {
	w.Helper()
	config := &corev1.ConfigMap{}
	w.read(naming.BackupConfigMap(db), config)
	settings, err := backupSettings(config)
	w.must(err)
	return settings
}

// sparesWAL sees that retention spares what a snapshot needs, and that nothing counts on it.
func (w *world) sparesWAL(db *v1.SampleDB, last string) *v1.SampleDB {
	w.Helper()
	db = w.reconcile(db)
	spared := w.backupSettings(db.Name).Keep.Snapshots
	if len(spared) != 1 || spared[0].StartLSN != "0/4000028" || spared[0].StopLSN != "0/4000100" ||
		spared[0].Term != 1 || spared[0].Label != "" {
		w.Errorf("spared are %+v", spared)
	}
	if db.Status.Backup.LastBackup != last {
		w.Errorf("the last backup is %s, and was %s", db.Status.Backup.LastBackup, last)
	}
	return db
}

// beginsWith makes a SampleDB of a backup by a snapshot.
func (w *world) beginsWith(b *v1.DatabaseBackup) {
	w.Helper()
	db := w.create("again", from(v1.RestoreSpec{Backup: b.Name}), archived, instances(2))
	words := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonInvalidSpec)
	if !strings.Contains(words, "needs a volume of 20Gi") || w.find("data-again-0", &corev1.PersistentVolumeClaim{}) {
		w.Errorf("of a volume that is too small it says %q", words)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Size = "20Gi" })
	db = w.reconcile(db)
	claim, other := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	w.read("data-again-0", claim)
	w.read("data-again-1", other)
	if !volumes.IsMadeOf(claim, b.Status.Snapshot.Name) || other.Spec.DataSource != nil {
		w.Errorf("the volumes are made of %+v and %+v", claim.Spec.DataSource, other.Spec.DataSource)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoring)
	config := &corev1.ConfigMap{}
	w.read(naming.RestoreConfigMap("again"), config)
	if text := config.Data[naming.KeyRestore]; !strings.Contains(text, "START WAL LOCATION") ||
		!strings.Contains(text, `"immediate": true`) {
		w.Errorf("the Pod of the restore is told %s", text)
	}
	w.noServerStartsWith(db)
}

// noServerStartsWith takes the source away: no server may start with the data as it was cut.
func (w *world) noServerStartsWith(db *v1.SampleDB) {
	w.Helper()
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.RestoreFrom = nil })
	words := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoreFailed)
	if !strings.Contains(words, "data-again-0 was made of VolumeSnapshot") {
		w.Errorf("it says %q", words)
	}
	if w.find(naming.StatefulSet(db.Name), &appsv1.StatefulSet{}) {
		w.Error("there are instances")
	}
}

// spoilsNoVolume has a volume there before the SampleDB that is to be made of a snapshot.
func (w *world) spoilsNoVolume(b *v1.DatabaseBackup) {
	w.Helper()
	former, err := desired.Claim(w.sampleDB("there"), 0, nil)
	w.must(err)
	w.must(w.api.Create(w.Context(), former))
	db := w.create("there", from(v1.RestoreSpec{Backup: b.Name}), archived,
		func(db *v1.SampleDB) { db.Spec.Storage.Size = "20Gi" })
	db = w.reconcile(db)
	words := w.expect(db, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoreFailed)
	if !strings.Contains(words, "data-there-0 was there before") {
		w.Errorf("it says %q", words)
	}
}

// endsEarly cancels a backup, which leaves no snapshot. Rules refuse what does not go with one.
func (w *world) endsEarly(k *taker) {
	w.Helper()
	b := k.ask("x-early", "x", bySnapshot(""))
	k.pod(b, "x-early-a")
	k.pods.progress = &protocol.BackupProgress{Instance: "x-0", Session: session}
	b = k.take(b)
	name := naming.VolumeSnapshot(b.Name, session)
	if w.snapshot(name) == nil {
		w.Fatal("there is no VolumeSnapshot")
	}
	b.Spec.Cancel = true
	w.must(w.api.Update(w.Context(), b))
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled")
	if w.snapshot(name) != nil {
		w.Error("its VolumeSnapshot is still there")
	}
	for words, modify := range map[string]func(*v1.DatabaseBackup){
		"stays as long as this DatabaseBackup": func(b *v1.DatabaseBackup) { bySnapshot("")(b); b.Spec.Keep = true },
		"is proven by a SampleDB":              func(b *v1.DatabaseBackup) { bySnapshot("")(b); b.Spec.Verify = true },
		"goes with method: VolumeSnapshot":     func(b *v1.DatabaseBackup) { b.Spec.VolumeSnapshotClassName = "fast" },
	} {
		refused := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "refused"},
			Spec: v1.DatabaseBackupSpec{SampleDB: "x", Deadline: metav1.Duration{Duration: time.Hour}}}
		modify(refused)
		if err := w.api.Create(w.Context(), refused); err == nil || !strings.Contains(err.Error(), words) {
			w.Errorf("the rules say %v, expected %q", err, words)
		}
	}
}

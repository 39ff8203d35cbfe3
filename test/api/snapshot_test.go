package api

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// goes deletes a SampleDB and reconciles it once.
func (w *world) goes(db *v1.SampleDB, how ...client.DeleteOption) *v1.SampleDB {
	w.Helper()
	w.must(w.api.Delete(w.Context(), db, how...))
	return w.reconcile(db)
}

// waiting checks what a SampleDB that is being deleted waits for.
func (w *world) waiting(db *v1.SampleDB, words string) {
	w.Helper()
	if db == nil {
		w.Fatal("the SampleDB is gone")
	}
	if m := w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonDeleting); !strings.Contains(m, words) {
		w.Fatalf("it says %q, want %q", m, words)
	}
	if !w.find(db.Name, &appsv1.StatefulSet{}) {
		w.Fatal("the instances are gone")
	}
}

// letGo has the primary's agent say that no client is there any more.
func (w *world) letGo() { w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Closed = true }) }

func (k *taker) final(db *v1.SampleDB) *v1.DatabaseBackup {
	k.Helper()
	b := &v1.DatabaseBackup{}
	k.read(naming.FinalBackup(db.Name, string(db.UID)), b)
	return b
}

// gone lets the Pods end, and expects the SampleDB to go with its volumes.
func (w *world) gone(db *v1.SampleDB) {
	w.Helper()
	w.must(w.api.DeleteAllOf(w.Context(), &corev1.Pod{}, client.InNamespace(w.namespace),
		client.MatchingLabels(naming.InstanceSelector(db.Name))))
	for range 3 {
		if now := w.reconcile(db); now == nil {
			break
		}
		for i := range instanceCount(db) {
			w.protectionOff(naming.Claim(db.Name, i))
		}
	}
	if w.find(db.Name, &v1.SampleDB{}) {
		w.Fatal("the SampleDB is still there")
	}
}

func instanceCount(db *v1.SampleDB) int { return max(1, int(db.Spec.Instances)) }

func TestASnapshotIsTakenBeforeASampleDBGoes(t *testing.T) {
	k, db := newWorld(t).ready("x")
	claim := &corev1.PersistentVolumeClaim{}
	k.read("data-x-0", claim)
	if len(claim.OwnerReferences) != 0 {
		t.Error("the volume goes with the SampleDB, whoever removes that")
	}
	db = k.goes(db)
	k.waiting(db, "sessions of clients")
	if last := k.agents.configs[len(k.agents.configs)-1]; !last.Closed {
		t.Error("clients are still let in")
	}
	k.letGo()
	db = k.reconcile(db)
	k.waiting(db, "the last backup, x-final-")
	b := k.take(k.final(db))
	if b.Spec.From != v1.BackupFromPrimary || len(b.OwnerReferences) != 0 {
		t.Errorf("the last backup is %+v of %v", b.Spec, b.OwnerReferences)
	}
	k.phase(k.pod(b, "x-final-a"), corev1.PodSucceeded, &taken)
	k.take(b)
	db = k.reconcile(db)
	if k.find("x", &appsv1.StatefulSet{}) {
		t.Error("the instances are not stopped")
	}
	k.gone(db)
	if !k.find(b.Name, &v1.DatabaseBackup{}) {
		t.Error("the last backup is gone")
	}
}

// What was written after an earlier backup is not in it, whatever its name.
func TestABackupByTheNameOfTheLastOneIsNotTakenForIt(t *testing.T) {
	k, db := newWorld(t).ready("x")
	own := k.complete(k.ask(naming.FinalBackup("x", string(db.UID)), "x"))
	k.letGo()
	db = k.goes(db)
	k.waiting(db, own.Name+" is an earlier one of that name; delete it")
	k.must(k.api.Delete(k.Context(), own))
	db = k.reconcile(db)
	k.waiting(db, "the last backup, "+own.Name)
	if b := k.final(db); b.UID == own.UID || b.Labels[naming.LabelOwner] != string(db.UID) {
		t.Errorf("the last backup is %+v", b.ObjectMeta)
	}
}

func TestADeletionWaitsForItsSnapshotAndCanBeForced(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.letGo()
	db = k.goes(db)
	b := k.take(k.final(db))
	k.phase(k.pod(b, "x-final-a"), corev1.PodFailed, &protocol.BackupResult{Error: "the bucket is away"})
	k.failJob(b.Name, "BackoffLimitExceeded")
	k.take(b)
	db = k.reconcile(db)
	k.waiting(db, "the bucket is away")
	// It is tried again when it is deleted.
	k.must(k.api.Delete(k.Context(), b))
	db = k.reconcile(db)
	k.waiting(db, b.Name)
	if again := k.final(db); again.UID == b.UID {
		t.Error("the last backup is not tried again")
	}
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionDelete })
	k.gone(db)
}

// Where the Pod of the last backup is gone before its result was read, nothing proves that there is one.
func TestALastBackupWhoseResultIsLostKeepsTheVolumes(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.letGo()
	db = k.goes(db)
	b := k.take(k.final(db))
	pod := k.pod(b, "x-final-a")
	k.phase(pod, corev1.PodSucceeded, nil)
	job := &batchv1.Job{}
	k.read(b.Name, job)
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
	k.must(k.api.Status().Update(k.Context(), job))
	k.must(k.api.Delete(k.Context(), pod, client.GracePeriodSeconds(0)))
	b = k.take(b)
	k.expectComplete(b, metav1.ConditionFalse, v1.ReasonFailed, "Failed")
	db = k.reconcile(db)
	k.waiting(db, "nothing proves that")
	k.must(k.api.Delete(k.Context(), b))
	k.must(k.api.Delete(k.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	db = k.reconcile(db)
	again := k.complete(k.final(db))
	if again.UID == b.UID {
		t.Error("the last backup is not taken again")
	}
	k.gone(k.reconcile(db))
}

// Who deletes in the foreground has Kubernetes remove what belongs to the SampleDB at once.
func TestADeletionInTheForegroundTakesItsSnapshotAllTheSame(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.must(k.api.Delete(k.Context(), db, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	k.must(k.api.Delete(k.Context(),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "x"}}))
	k.must(k.api.DeleteAllOf(k.Context(), &corev1.Pod{}, client.InNamespace(k.namespace),
		client.MatchingLabels(naming.InstanceSelector("x"))))
	db = k.reconcile(db)
	if slices.Contains(db.Finalizers, metav1.FinalizerDeleteDependents) {
		t.Error("Kubernetes goes on to remove what belongs to the SampleDB")
	}
	db = k.reconcile(db)
	k.waiting(db, "a primary")
	for range 3 {
		k.playCluster(db)
		db = k.reconcile(db)
	}
	k.letGo()
	db = k.reconcile(db)
	k.waiting(db, "the last backup")
	// Kubernetes may have been slower than that.
	k.must(k.api.Delete(k.Context(),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "x"}}))
	k.reconcile(db)
	if !k.find("x", &appsv1.StatefulSet{}) {
		t.Error("there is no database of which the last backup could be taken")
	}
}

// Without an archive there is no backup, and what is nowhere else stays.
func TestASampleDBWithoutAnArchiveLeavesItsVolumes(t *testing.T) {
	w := newWorld(t)
	db := w.sampleDB("x", withoutBackup, func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionSnapshot })
	if err := w.api.Create(w.Context(), db); err == nil || !strings.Contains(err.Error(), "leaves no place for one") {
		t.Errorf("a snapshot without an archive: %v", err)
	}
	plain := w.started("y", withoutBackup)
	w.must(w.api.Delete(w.Context(), plain))
	w.reconcile(plain)
	w.gone(plain)
	if w.deleting("data-y-0") {
		t.Error("the only copy of the data goes, and nobody has said Delete")
	}
}

// A SampleDB from before backups were the default says nothing about them, or has said so once and does not any more.
func TestRemovingTheBackupFromTheSpecKeepsTheSnapshot(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Backup = nil })
	k.letGo()
	db = k.goes(db)
	k.waiting(db, "the last backup, x-final-")
}

// With its namespace everything goes, and nothing can be made in it any more.
func TestADeletedNamespaceTakesItsSampleDBsWithIt(t *testing.T) {
	k, db := newWorld(t).ready("x")
	k.must(k.api.Delete(k.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: k.namespace}}))
	k.must(k.api.DeleteAllOf(k.Context(), &corev1.Pod{}, client.InNamespace(k.namespace),
		client.MatchingLabels(naming.InstanceSelector("x"))))
	k.goes(db)
	k.gone(db)
}

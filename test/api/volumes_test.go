package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// whenScaledDelete has the volumes of instances removed that are scaled away, and of no others.
func whenScaledDelete(db *v1.SampleDB) {
	db.Spec.Storage.WhenScaled, db.Spec.DeletionPolicy = v1.ScaleDelete, v1.DeletionRetain
}

// kept checks which volumes of instances are there and not being deleted.
func (w *world) kept(want ...string) {
	w.Helper()
	var claims corev1.PersistentVolumeClaimList
	w.must(w.api.List(w.Context(), &claims, client.InNamespace(w.namespace)))
	var got []string
	for _, c := range claims.Items {
		if c.DeletionTimestamp == nil && strings.HasPrefix(c.Name, naming.VolumeData+"-") {
			got = append(got, c.Name)
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		w.Errorf("the volumes %v stay, want %v", got, want)
	}
}

// says checks that StorageReady has a sentence.
func (w *world) says(db *v1.SampleDB, words string) {
	w.Helper()
	for _, c := range db.Status.Conditions {
		if c.Type == v1.ConditionStorageReady && !strings.Contains(c.Message, words) {
			w.Errorf("StorageReady says %q, want %q", c.Message, words)
		}
	}
}

// leave deletes a SampleDB whose volumes stay, and lets everything else of it go.
func (w *world) leave(db *v1.SampleDB) {
	w.Helper()
	w.must(w.api.Delete(w.Context(), db))
	w.reconcile(db)
	w.must(w.api.DeleteAllOf(w.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	if w.reconcile(db) != nil {
		w.Fatal("the SampleDB is still there")
	}
	w.collectGarbage(db)
	w.agents.answers = map[string]protocol.Status{}
}

// Which of the volumes that a former SampleDB has left has the newest data is not known before
// one of its instances leads.
func TestASampleDBThatIsMadeAgainSmallerRemovesNoVolumeUnseen(t *testing.T) {
	w := newWorld(t)
	w.leave(w.started("x", instances(3), whenScaledDelete))
	w.nextSecond("data-x-0")
	db := w.create("x", whenScaledDelete)
	db = w.reconcile(db)
	w.kept("data-x-0", "data-x-1", "data-x-2")
	w.playCluster(db)
	w.agents.change("10.1.0.1", notReady) // it waits for those with which it was
	for range 2 {
		db = w.reconcile(db)
	}
	w.kept("data-x-0", "data-x-1", "data-x-2")
	w.says(db, "volume data-x-2 stays: no instance is known to take writes")
	w.agents.voters = []string{"x-0", "x-1"}
	w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Ready = true })
	db = w.reconcile(db)
	w.kept("data-x-0", "data-x-1")
	w.says(db, "volume data-x-1 stays: x-1 still counts")
	w.agents.voters = []string{"x-0"}
	w.reconcile(db)
	w.kept("data-x-0")
}

// A database that was begun anew says nothing about the volumes of the one before.
func TestVolumesOfAFormerSampleDBStayBesideANewDatabase(t *testing.T) {
	w := newWorld(t)
	w.leave(w.started("x", instances(2), whenScaledDelete))
	w.must(w.api.Delete(t.Context(),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "data-x-0"}}))
	w.protectionOff("data-x-0")
	w.nextSecond("data-x-1")
	db := w.started("x", whenScaledDelete)
	w.kept("data-x-0", "data-x-1")
	w.says(db, "volume data-x-1 stays: it is of a former SampleDB")
}

// nextSecond waits until what is made is younger than a claim, by the API server's clock of whole seconds.
func (w *world) nextSecond(claim string) {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{}
	w.read(claim, c)
	for time.Now().Unix() <= c.CreationTimestamp.Unix() {
		time.Sleep(10 * time.Millisecond)
	}
}

// Those that count are needed to elect another, and their volumes with them.
func TestInstancesThatCountComeBackWithTheirStatefulSet(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3), whenScaledDelete)
	w.agents.voters = []string{"x-0", "x-1", "x-2"}
	db = w.edit(db, instances(1))
	w.must(w.api.Delete(t.Context(),
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x"}}))
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	w.agents.answers = map[string]protocol.Status{}
	db = w.reconcile(db)
	w.kept("data-x-0", "data-x-1", "data-x-2")
	w.says(db, "it is not known whether the StatefulSet has given up x-2")
	w.expectInstances(db, 3, "")
	w.playCluster(db)
	for range 2 {
		db = w.reconcile(db)
	}
	w.kept("data-x-0", "data-x-1", "data-x-2")
	w.agents.voters = []string{"x-0"}
	for range 3 {
		db = w.reconcile(db)
		w.playCluster(db)
	}
	w.expectInstances(db, 1, "")
	w.kept("data-x-0")
}

// The data is restored onto a volume that stays, and no volume goes before it is there.
func TestARestoreInPlaceWaitsForTheInstancesThatAreTooMany(t *testing.T) {
	k, db := newWorld(t).smaller(3)
	k.lead("x-2", 2)
	db = k.edit(db, func(db *v1.SampleDB) {
		db.Spec.Instances = 1
		inPlace("oops", "x")(db)
	})
	k.noJob(db)
	if m := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse,
		v1.ReasonRestoring); !strings.Contains(m, "a volume that stays") {
		t.Errorf("Restored says %q", m)
	}
	k.lead("x-0", 3)
	k.agents.voters = []string{"x-0"}
	db = k.reconcile(db)
	k.expectInstances(db, 1, "")
	k.playCluster(db)
	for range 2 {
		db = k.reconcile(db)
	}
	k.kept("data-x-0", "data-x-1", "data-x-2")
	k.says(db, "volume data-x-2 stays: a restore has not ended")
	k.finishes(k.inPlaceJob(db), "x-restore-a")
	for range 6 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	k.reconcile(db)
	k.kept("data-x-0")
}

// smaller is a SampleDB with an archive whose claims go when its instances do.
func (w *world) smaller(n int32) (*taker, *v1.SampleDB) {
	w.Helper()
	k := w.taker()
	return k, w.started("x", instances(n), archived, whenScaledDelete)
}

// noJob checks that no restore has begun.
func (k *taker) noJob(db *v1.SampleDB) {
	k.Helper()
	for _, job := range k.jobs(db) {
		if job.Labels[naming.LabelComponent] == naming.ComponentRestore {
			k.Fatalf("Job %s has begun", job.Name)
		}
	}
}

// finishes has the Job of a restore end well.
func (k *taker) finishes(job *batchv1.Job, pod string) {
	k.Helper()
	k.restorePod(job, pod, &backRestored)
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}
	k.must(k.api.Status().Update(k.Context(), job))
}

// Once it has begun, the instance with the restored data is one of those that stop and start again,
// whatever the spec wants by then.
func TestNoInstanceIsScaledAwayDuringARestoreInPlace(t *testing.T) {
	k, db := newWorld(t).smaller(3)
	k.lead("x-2", 2)
	db = k.edit(db, inPlace("oops", "x"))
	job := &batchv1.Job{}
	k.read(desired.InPlace(*db.Spec.Restore, 2).JobName(db), job)
	db = k.edit(db, instances(1))
	k.expectInstances(db, 3, "")
	if m := k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonScaling); !strings.Contains(m,
		"a restore has not ended") {
		t.Errorf("Ready says %q", m)
	}
	if n := len(k.agents.switchovers); n != 0 {
		t.Errorf("the primary is asked to hand over: %v", k.agents.switchovers)
	}
	k.finishes(job, "x-restore-a")
	for range 2 {
		db = k.reconcile(db)
	}
	k.expectInstances(db, 0, "")
	k.playCluster(db)
	db = k.reconcile(db)
	k.expectInstances(db, 3, "oops")
	k.playCluster(db)
	k.lead("x-2", 1001)
	k.agents.voters = []string{"x-2"}
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	// x-0 has forgotten what it had promised: told that it is the only one, it would lead with what was replaced.
	db = k.reconcile(db)
	if members := k.agents.told().Members; len(members) != 3 {
		t.Errorf("the agents are told of %v", members)
	}
	k.agents.voters = []string{"x-0", "x-2"}
	k.lead("x-0", 1002)
	for range 2 {
		db = k.reconcile(db)
	}
	if members := k.agents.told().Members; len(members) != 1 {
		t.Errorf("the agents are told of %v", members)
	}
	k.agents.voters = []string{"x-0"}
	for range 3 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	k.expectInstances(db, 1, "oops")
	db = k.reconcile(db)
	k.kept("data-x-0", "data-x-2")
	k.says(db, "volume data-x-2 stays: it has the data that the restore oops has replaced")
	k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore.Before = v1.BeforeDelete })
	k.kept("data-x-0")
}

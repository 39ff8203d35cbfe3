package api

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

func inPlace(id, confirm string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) {
		db.Spec.Restore = &v1.InPlaceRestore{
			ID: id, Confirm: confirm, Target: &v1.RestoreTarget{Time: "2026-11-20T03:14:00Z"},
		}
	}
}

// told is what the agents were told last.
func (a *agents) told() protocol.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.configs[len(a.configs)-1]
}

// expectInstances checks how many instances there are to be, and which restore in place they have to have taken over.
func (w *world) expectInstances(db *v1.SampleDB, replicas int32, restored string) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(naming.StatefulSet(db.Name), set)
	id := envOf(set, naming.EnvRestored)
	if id != restored || *set.Spec.Replicas != replicas {
		w.Errorf("%d instances with the restore %q, expected %d with %q", *set.Spec.Replicas, id, replicas, restored)
	}
}

// envOf is what the agents of a StatefulSet find in their environment, "" for nothing.
func envOf(set *appsv1.StatefulSet, name string) string {
	for _, e := range set.Spec.Template.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func TestASampleDBIsRestoredInPlace(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, inPlace("oops", "x"))
	job := &batchv1.Job{}
	k.read(desired.InPlace(*db.Spec.Restore, 0).JobName(db), job)
	affinity := job.Spec.Template.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(affinity) != 1 || affinity[0].LabelSelector.MatchLabels[appsv1.StatefulSetPodNameLabel] != "x-0" {
		t.Errorf("its Pod goes where %+v", affinity)
	}
	pod := k.restorePod(job, "x-restore-a", nil)
	db = k.reconcile(db)
	k.expect(db, v1.ConditionRestored, metav1.ConditionFalse, v1.ReasonRestoring)
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady) // it serves meanwhile
	if config := k.agents.told(); !config.Prepares || config.Restored != "" {
		t.Errorf("the agents are told %+v", config)
	}

	k.endRestore(pod, backRestored)
	db = k.reconcile(db)
	db = k.reconcile(db)
	k.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonRestoring)
	k.expectInstances(db, 0, "")
	db = k.reconcile(db) // they still run
	k.expectInstances(db, 0, "")
	k.playCluster(db)
	db = k.reconcile(db)
	k.expectInstances(db, 2, "oops")
	for range 4 {
		k.playCluster(db)
		db = k.reconcile(db)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	if r := db.Status.Restore; r.ID != "oops" || r.CompletedAt == nil || r.LSN != "0/6000000" {
		t.Errorf("the status is %+v", r)
	}
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore.Before = v1.BeforeDelete })
	if config := k.agents.told(); !config.RemoveBefore || config.Prepares || config.Restored != "oops" {
		t.Errorf("the agents are told %+v", config)
	}
	// Without it nothing changes.
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore = nil })
	k.expectInstances(db, 2, "oops")
}

// What was backed up since the target is of the branch that was left: none but another backup is
// the newest of the new one.
func TestARestoreInPlaceIsFollowedByABackup(t *testing.T) {
	k, db := newWorld(t).ready("x")
	db = k.edit(db, daily("none")) // a default schedule may be due in the hours below
	db = k.edit(db, inPlace("oops", "x"))
	k.restorePod(k.inPlaceJob(db), "x-restore-a", &backRestored)
	before := len(k.backups())
	for range 8 {
		db = k.reconcile(db)
		k.playCluster(db)
	}
	k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
	if names := k.backups(); len(names) != before {
		t.Fatalf("while the archive does not work there are %v", names)
	}
	state := works
	db = k.archive(db, &state)
	for range 3 {
		db = k.reconcile(db)
	}
	names := k.backups()
	if len(names) != before+1 {
		t.Fatalf("there are %v", names)
	}
	b := &v1.DatabaseBackup{}
	k.read(names[len(names)-1], b)
	k.complete(b)
	k.now = k.now.Add(3 * time.Hour)
	for range 3 {
		db = k.reconcile(db)
	}
	if names := k.backups(); len(names) != before+1 {
		t.Errorf("with that complete there are %v", names)
	}
}

func (k *taker) inPlaceJob(db *v1.SampleDB) *batchv1.Job {
	k.Helper()
	job := &batchv1.Job{}
	k.read(inPlaceJob(db), job)
	return job
}

func TestARestoreInPlaceThatFailsLeavesAllAsItIs(t *testing.T) {
	k, db := newWorld(t).ready("x")
	for change, words := range map[*v1.InPlaceRestore]string{
		{ID: "a", Confirm: "y", Backup: "b"}: "must be the name of the SampleDB",
		{ID: "a", Confirm: "x"}:              "must have one of these",
	} {
		wrong := db.DeepCopy()
		wrong.Spec.Restore = change
		if err := k.api.Update(k.Context(), wrong); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v", change, err)
		}
	}
	wrong := k.sampleDB("z", withoutBackup, inPlace("a", "z"))
	if err := k.api.Create(k.Context(), wrong); err == nil ||
		!strings.Contains(err.Error(), "backup.none: true does without") {
		t.Errorf("without an archive: %v", err)
	}
	db = k.edit(db, inPlace("oops", "x"))
	job := &batchv1.Job{}
	k.read(desired.InPlace(*db.Spec.Restore, 0).JobName(db), job)
	k.restorePod(job, "x-restore-a", &protocol.RestoreResult{Error: "outside of what can be restored"})
	k.failJob(job.Name, "BackoffLimitExceeded")
	db = k.reconcile(db)
	if words := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse,
		v1.ReasonRestoreFailed); !strings.Contains(words, "outside") {
		t.Errorf("it says %q", words)
	}
	k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore = nil })
	if db.Status.Restore != nil || k.find(job.Name, &batchv1.Job{}) {
		t.Errorf("what was given up is still there: %+v", db.Status.Restore)
	}
	k.expectInstances(db, 2, "")
}

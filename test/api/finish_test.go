package api

import (
	"encoding/json"
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
	"toban.dev/internal/work/maintenance"
)

// sorts has the primary say what it has found of the orders of texts.
func (w *world) sorts(db *v1.SampleDB, found *maintenance.Report) *v1.SampleDB {
	w.Helper()
	for host, answer := range w.agents.answers {
		if answer.Name == db.Status.Primary {
			w.agents.change(host, func(s *protocol.Status) { s.Collations = found })
		}
	}
	return w.reconcile(db)
}

// changed is what it says when a library has changed.
func changed() *maintenance.Report {
	return &maintenance.Report{
		Databases: []maintenance.Version{{Database: "shop", Recorded: "2.36", Actual: "2.41"}},
		Indexes:   3, Dependent: 3,
	}
}

// current is what it says when all is as it was.
func current() *maintenance.Report { return &maintenance.Report{Dependent: 3} }

// finishJob is the Job, nil where there is none that is not being deleted.
func (w *world) finishJob(db *v1.SampleDB) *batchv1.Job {
	w.Helper()
	for _, job := range w.jobs(db) {
		if job.Name == naming.FinishJob(db.Name) && job.DeletionTimestamp == nil {
			return &job
		}
	}
	return nil
}

// finishes plays the Pod of the Job.
func (w *world) finishes(db *v1.SampleDB, result maintenance.Result) *v1.SampleDB {
	w.Helper()
	job := w.finishJob(db)
	if job == nil {
		w.Fatal("there is no Job")
	}
	pod := w.restorePod(job, job.Name+"-"+string(job.UID[:5]), nil)
	text, err := json.Marshal(result)
	w.must(err)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: naming.ContainerFinish, Image: "x",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(text)}},
	}}
	w.must(w.api.Status().Update(w.Context(), pod))
	return w.reconcile(db)
}

// A change of the library that comes with another image is followed by the rebuild at once, also without a window.
func TestAnotherLibraryIsFollowedByARebuild(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionUnknown, v1.ReasonCollationsNotRead)
	db = w.sorts(db, current())
	w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionTrue, v1.ReasonCollationsCurrent)
	if db.Status.SortedBy == "" || w.finishJob(db) != nil || db.Status.Finish != nil {
		t.Fatalf("sorted by %q; %+v", db.Status.SortedBy, db.Status.Finish)
	}
	db = w.sorts(db, nil) // another primary, which has not looked yet
	w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionTrue, v1.ReasonCollationsCurrent)
	w.drainEvents()
	db = w.sorts(db, changed())
	message := w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionFalse, v1.ReasonRebuilding)
	job := w.finishJob(db)
	if job == nil || !strings.Contains(message, "3 indexes") || !strings.Contains(message, "2.36") {
		t.Fatalf("%v: %s", job, message)
	}
	w.rebuildsIndexes(job)
	db = w.showsProgress(db)
	db = w.finishes(db, maintenance.Result{Done: true, Rebuilt: 3, Checked: 2, Broken: 1})
	db = w.sorts(db, current())
	w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionTrue, v1.ReasonCollationsCurrent)
	if f := db.Status.Finish; f.Step != v1.FinishDone || f.Rebuilt != 3 || f.OutOfOrder != 1 || len(f.Parts) > 0 {
		t.Errorf("the status is %+v", f)
	}
	if w.finishJob(db) != nil {
		t.Error("the Job is left")
	}
	if told := w.drainEvents(); !strings.Contains(told, "Finished") {
		t.Errorf("the events are %s", told)
	}
	w.rests(db)
}

// rebuildsIndexes fails the test unless a Job rebuilds indexes and nothing else.
func (w *world) rebuildsIndexes(job *batchv1.Job) {
	w.Helper()
	if got := job.Spec.Template.Spec.Containers[0].Command; !slices.Contains(got, "Indexes") ||
		slices.Contains(got, "--update-extensions") || job.Spec.Template.Labels[naming.LabelComponent] != "finish" {
		w.Errorf("it runs %q", got)
	}
}

// showsProgress has the primary say how far the rebuild is, and fails the test unless the status says that too.
func (w *world) showsProgress(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	working := changed()
	working.Progress = &maintenance.Progress{Done: 1, Total: 3, Current: "items_pkey"}
	db = w.sorts(db, working)
	if f := db.Status.Finish; f == nil || f.Step != v1.FinishRunning || f.Done != 1 || f.Total != 3 ||
		f.Current != "items_pkey" {
		w.Errorf("the status is %+v", f)
	}
	return db
}

// rests fails the test if anything is written when nothing has changed.
func (w *world) rests(db *v1.SampleDB) {
	w.Helper()
	w.writes.take()
	for range 3 {
		db = w.reconcile(db)
	}
	if writes := w.writes.take(); len(writes) > 0 {
		w.Errorf("at rest it writes %q", writes)
	}
}

// What was so before anybody looked, and what is only to be done on request, waits for that.
func TestARebuildThatWaits(t *testing.T) {
	w := newWorld(t)
	db := w.sorts(w.started("x"), changed())
	message := w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionFalse, v1.ReasonCollationsChanged)
	if w.finishJob(db) != nil || !strings.Contains(message, "toban.dev/reindex=now") {
		t.Fatalf("it is rebuilt, or: %s", message)
	}
	if told := w.drainEvents(); !strings.Contains(told, "CollationsChanged") {
		t.Errorf("the events are %s", told)
	}
	db = w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationReindex, "now")
	})
	if w.finishJob(db) == nil {
		t.Fatal("it was asked for, and is not done")
	}
	db = w.finishes(db, maintenance.Result{
		Done: true, Rebuilt: 2, Duplicates: []string{"items_pkey on public.items (name)"},
	})
	message = w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionFalse, v1.ReasonDuplicateKeys)
	if !strings.Contains(message, "items (name)") || db.Annotations[naming.AnnotationReindex] != "" {
		t.Errorf("%s; %v", message, db.Annotations)
	}
	w.now = w.now.Add(2 * time.Hour)
	if db = w.reconcile(w.reconcile(db)); w.finishJob(db) != nil {
		t.Error("it is tried again, though only a person can mend it")
	}
}

// A database without a version on record is told apart, and so is one that can't be read.
func TestASortOrderThatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	db := w.sorts(w.started("x"), &maintenance.Report{
		Unrecorded: []maintenance.Version{{Database: "shop", Actual: "2.41"}}, Indexes: 2, Dependent: 2,
	})
	w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionUnknown, v1.ReasonVersionNotRecorded)
	db = w.sorts(db, &maintenance.Report{Problem: "too many connections"})
	message := w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionUnknown, v1.ReasonCollationsNotRead)
	if !strings.Contains(message, "too many connections") || w.finishJob(db) != nil {
		t.Error(message)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// A Job that fails is tried again an hour later, by what made it due.
func TestARebuildThatFails(t *testing.T) {
	w := newWorld(t)
	db := w.sorts(w.sorts(w.started("x"), current()), changed())
	db = w.finishes(db, maintenance.Result{Error: "the volume is full"})
	message := w.expect(db, v1.ConditionCollationsCurrent, metav1.ConditionFalse, v1.ReasonRebuildFailed)
	if db = w.reconcile(db); w.finishJob(db) != nil || !strings.Contains(message, "the volume is full") {
		t.Fatalf("it is tried again at once, or: %s", message)
	}
	w.now = w.now.Add(61 * time.Minute)
	if db = w.reconcile(db); w.finishJob(db) == nil {
		t.Errorf("it is not tried again: %+v", db.Status.Finish)
	}
}

// Another library in the image that the next update takes over is told before.
func TestAnUpdateSaysThatIndexesWillBeRebuilt(t *testing.T) {
	w := newWorld(t)
	db := w.sorts(w.recorded(), current())
	db, job := w.looks(db, 11*time.Minute, naming.ImageJob("x"))
	w.imagePodOf(job, formerImage, &protocol.ImageResult{Version: "17.6", CLibrary: "glibc 2.36", ICU: "72.1"})
	db = w.reconcile(w.reconcile(db))
	if i := db.Status.Image; i.RunsCLibrary != "glibc 2.36" || i.RunsICU != "72.1" {
		t.Fatalf("what runs has %+v", i)
	}
	// A Job takes its Pod along.
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace),
		client.MatchingLabels{naming.LabelComponent: naming.ComponentImage}, client.GracePeriodSeconds(0)))
	db, job = w.looks(db, 26*time.Hour, naming.ImageJob("x"))
	w.imagePod(job, &protocol.ImageResult{Version: "17.7", CLibrary: "glibc 2.41", ICU: "76.1"})
	db = w.reconcile(w.reconcile(db))
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionFalse, v1.ReasonMinorOutdated)
	if !strings.Contains(message, "glibc 2.41 instead of glibc 2.36 and ICU 76.1 instead of 72.1: up to 3 indexes") {
		t.Errorf("%s; %+v", message, db.Status.Image)
	}
}

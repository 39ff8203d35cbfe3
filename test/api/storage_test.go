package api

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func inClass(name string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Storage.StorageClassName = &name }
}

func TestAMissingStorageClassIsNamedBeforeAnythingWaitsForIt(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", inClass("later"))
	for _, kind := range []string{v1.ConditionReady, v1.ConditionStorageReady} {
		if m := w.expect(db, kind, metav1.ConditionFalse, v1.ReasonStorageClassNotFound); !strings.Contains(m,
			"StorageClass later does not exist") {
			t.Errorf("%s says: %s", kind, m)
		}
	}
	if w.find("x", &appsv1.StatefulSet{}) || w.find("data-x-0", &corev1.PersistentVolumeClaim{}) {
		t.Error("something was made that can only wait")
	}
	w.storageClass("later", false, true)
	defer func() {
		_ = w.api.Delete(t.Context(), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "later"}})
	}()
	db = w.reconcile(db)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
}

func TestGrowingReachesOldAndNewVolumes(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Size = "2Gi" })
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse, v1.ReasonResizing)
	db = w.reconcile(db)
	// The volume itself is as small as before.
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse, v1.ReasonResizing)
	w.bindClaim("data-x-0")
	db = w.reconcile(db)
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionTrue, v1.ReasonBound)
	if events := w.drainEvents(); strings.Count(events, "Resizing") != 1 || !strings.Contains(events, "Resized") {
		t.Errorf("events: %s", events)
	}
	w.edit(db, instances(2))
	for _, name := range []string{"data-x-0", "data-x-1"} {
		claim := &corev1.PersistentVolumeClaim{}
		w.read(name, claim)
		if got := claim.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
			t.Errorf("%s asks for %s", name, got)
		}
	}
}

// Whether a volume can grow is said by the class that it has, not by what the default is by now.
func TestAVolumeGrowsByItsOwnClass(t *testing.T) {
	runAlone(t) // volumes of other tests would be made in the new default class
	w := newWorld(t)
	db := w.started("x")
	standard, late := &storagev1.StorageClass{}, &storagev1.StorageClass{}
	w.must(w.api.Get(t.Context(), client.ObjectKey{Name: "standard"}, standard))
	w.until("no second has passed", func() bool { return time.Since(standard.CreationTimestamp.Time) > 2*time.Second })
	w.storageClass("late", true, false) // of several defaults the newest counts
	w.must(w.api.Get(t.Context(), client.ObjectKey{Name: "late"}, late))
	t.Cleanup(func() { w.must(w.api.Delete(context.WithoutCancel(t.Context()), late)) })
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Size = "2Gi" })
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse, v1.ReasonResizing)
}

func TestAClassThatCantGrowKeepsNothingElseFromBeingApplied(t *testing.T) {
	w := newWorld(t)
	w.storageClass("fixed", false, false)
	db := w.started("x", inClass("fixed"))
	db = w.edit(db, func(db *v1.SampleDB) {
		db.Spec.Storage.Size = "2Gi"
		db.Spec.Instances = 2
	})
	if m := w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse,
		v1.ReasonResizeRefused); !strings.Contains(m, "StorageClass fixed") {
		t.Errorf("it says: %s", m)
	}
	w.expect(db, v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	set := &appsv1.StatefulSet{}
	w.read("x", set)
	if *set.Spec.Replicas != 2 {
		t.Error("the second instance was not added")
	}
}

// A claim of an earlier release has a label by which Argo CD can take it for its own, and delete it.
func TestAClaimOfAnEarlierReleaseLosesTheLabelOfItsInstance(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	claim := &corev1.PersistentVolumeClaim{}
	w.read("data-x-0", claim)
	claim.Labels[naming.LabelInstance], claim.Annotations[naming.AnnotationApplied] = "x", "former"
	w.must(w.api.Update(t.Context(), claim, client.FieldOwner(naming.FieldOwner)))
	w.reconcile(db)
	w.read("data-x-0", claim)
	if claim.Labels[naming.LabelInstance] != "" || claim.Labels[naming.LabelSampleDB] != "x" {
		t.Errorf("its labels are %v", claim.Labels)
	}
}

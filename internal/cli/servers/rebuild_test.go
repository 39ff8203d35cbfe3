package servers

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster/clustertest"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/scheme"
)

// A standby loses its data only where that of every other instance is known to be well.
func TestWhatMayBeRebuilt(t *testing.T) {
	unready := func(ordinal int) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) { db.Status.InstanceStatuses[ordinal].Ready = false }
	}
	for name, c := range map[string]struct {
		instance string
		change   func(*v1.SampleDB)
		words    string
	}{
		"a standby":                    {"shop-2", func(*v1.SampleDB) {}, ""},
		"one that is not ready itself": {"shop-2", unready(2), ""},
		"another one is not ready":     {"shop-2", unready(1), "shop-1 is not ready"},
		"the primary":                  {"shop-0", func(*v1.SampleDB) {}, "kubectl toban switchover shop"},
		"nobody takes writes":          {"shop-2", func(db *v1.SampleDB) { db.Status.Primary = "" }, "the last copy"},
		"one that is not there":        {"shop-3", func(*v1.SampleDB) {}, "there are shop-0, shop-1, shop-2"},
		"of a database that is stopped": {"shop-2", func(db *v1.SampleDB) {
			db.Status.Stop = &v1.StopStatus{}
		}, "is stopped"},
		"during a restart": {"shop-2", func(db *v1.SampleDB) {
			db.Annotations = map[string]string{naming.AnnotationRestart: naming.RestartAll}
		}, "a restart"},
		"during a restore": {"shop-2", func(db *v1.SampleDB) { db.Status.Restore = &v1.RestoreStatus{} }, "a restore"},
		"during an upgrade": {"shop-2", func(db *v1.SampleDB) {
			db.Status.Upgrade = &v1.UpgradeStatus{Step: v1.UpgradeUpgrading}
		}, "an upgrade"},
	} {
		db := clustertest.ThreeReady()
		c.change(db)
		err := rebuildRefused(db, c.instance)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: it is refused by %v, want %q", name, err, c.words)
		}
	}
}

// The claim goes with the Pod; the command ends when there is another claim, and not before.
func TestARebuildEndsWithAnotherVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
			return &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "data-shop-2", Namespace: "default", UID: uid},
				Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			}
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-2", Namespace: "default", UID: "p"}}
		known, err := scheme.New()
		if err != nil {
			t.Fatal(err)
		}
		api := fake.NewClientBuilder().WithScheme(known).
			WithObjects(clustertest.ThreeReady(), claim("c-1"), pod).Build()
		o := &rebuildOptions{instance: "shop-2"}
		o.Namespace, o.Timeout = "default", 6*time.Second
		if err := o.removeInstance(t.Context(), api, clustertest.ThreeReady()); err != nil || o.former != "c-1" {
			t.Fatalf("removed is the claim %q, %v", o.former, err)
		}
		for _, object := range []client.Object{pod, claim("c-1")} {
			key := client.ObjectKeyFromObject(object)
			if err := api.Get(t.Context(), key, object); !apierrors.IsNotFound(err) {
				t.Errorf("%s is still there: %v", key.Name, err)
			}
		}
		if err := o.await(t.Context(), io.Discard, api, clustertest.ThreeReady()); err == nil {
			t.Error("it ends without a volume")
		}
		if err := api.Create(t.Context(), claim("c-2")); err != nil {
			t.Fatal(err)
		}
		if err := o.await(t.Context(), io.Discard, api, clustertest.ThreeReady()); err != nil {
			t.Errorf("with another volume: %v", err)
		}
	})
}

// What a restore in place or an upgrade has set aside goes with the volume, and nobody else has it.
func TestARebuildKeepsWhatWasSetAside(t *testing.T) {
	done := metav1.Now()
	restored := func(db *v1.SampleDB, instance string) {
		db.Status.Restore = &v1.RestoreStatus{
			ID: "mistake", Instance: instance, PreparedAt: &done, CompletedAt: &done,
		}
	}
	upgraded := func(db *v1.SampleDB, back string) {
		db.Status.Upgrade = &v1.UpgradeStatus{ID: "17-18", From: 17, Instance: "shop-2", WayBack: back}
	}
	for name, c := range map[string]struct {
		change func(*v1.SampleDB, *corev1.PersistentVolumeClaim)
		words  string
	}{
		"nothing was": {func(*v1.SampleDB, *corev1.PersistentVolumeClaim) {}, ""},
		"by a restore, says the claim": {func(_ *v1.SampleDB, claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{naming.AnnotationSetAside: "mistake"}
		}, "before-mistake"},
		"by a restore, says the status": {func(db *v1.SampleDB, _ *corev1.PersistentVolumeClaim) {
			restored(db, "shop-2")
		}, "`id: mistake`"},
		"by a restore, on another volume": {func(db *v1.SampleDB, _ *corev1.PersistentVolumeClaim) {
			restored(db, "shop-1")
		}, ""},
		"before there was this volume": {func(db *v1.SampleDB, claim *corev1.PersistentVolumeClaim) {
			restored(db, "shop-2")
			claim.CreationTimestamp = metav1.NewTime(done.Add(time.Hour))
		}, ""},
		"nobody needs it": {func(db *v1.SampleDB, claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{naming.AnnotationSetAside: "mistake"}
			db.Spec.Restore = &v1.InPlaceRestore{ID: "mistake", Before: v1.BeforeDelete}
		}, ""},
		"by an upgrade": {func(db *v1.SampleDB, _ *corev1.PersistentVolumeClaim) {
			upgraded(db, v1.WayBackFormerData)
		}, "kubectl toban upgrade shop --accept"},
		"by an upgrade, and it has gone": {func(db *v1.SampleDB, _ *corev1.PersistentVolumeClaim) {
			upgraded(db, v1.WayBackArchive)
		}, ""},
	} {
		db, claim := clustertest.ThreeReady(), &corev1.PersistentVolumeClaim{}
		c.change(db, claim)
		err := setAsideOn(db, "shop-2", claim)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: it is refused by %v, want %q", name, err, c.words)
		}
	}
}

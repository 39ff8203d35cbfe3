package api

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/servers"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func walOf(size string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Storage.WAL = &v1.WALSpec{Size: size} }
}

// claimsAsk is what the claims ask for.
func (w *world) claimsAsk(names ...string) (out []string) {
	w.Helper()
	for _, name := range names {
		claim := &corev1.PersistentVolumeClaim{}
		w.read(name, claim)
		out = append(out, claim.Spec.Resources.Requests.Storage().String())
	}
	return out
}

// A WAL volume is made for each instance, in the class of the data if it has none of its own, and grows with its size.
// What else could be asked of it is refused, with what to do.
func TestWALVolumes(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", withoutBackup, inClass("standard"), walOf("1Gi"))
	claim := &corev1.PersistentVolumeClaim{}
	w.read("wal-x-0", claim)
	if class := claim.Spec.StorageClassName; class == nil || *class != "standard" {
		t.Errorf("the WAL volume is in the class %v", class)
	}
	set := &appsv1.StatefulSet{}
	w.read("x", set)
	if n := len(set.Spec.VolumeClaimTemplates); n != 2 {
		t.Errorf("the StatefulSet makes %d claims", n)
	}
	db = w.edit(db, walOf("2Gi"))
	if m := w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse,
		v1.ReasonResizing); !strings.Contains(m, "wal-x-0") {
		t.Errorf("it says: %s", m)
	}
	w.bindClaim("wal-x-0")
	db = w.edit(w.reconcile(db), instances(2))
	if got := w.claimsAsk("data-x-0", "data-x-1", "wal-x-0", "wal-x-1"); !slices.Equal(got,
		[]string{"1Gi", "1Gi", "2Gi", "2Gi"}) {
		t.Errorf("the claims ask for %q", got)
	}
	other := "other"
	for what, change := range map[string]func(*v1.SampleDB){
		"smaller": walOf("1Gi"),
		"removed": func(db *v1.SampleDB) { db.Spec.Storage.WAL = nil },
		"of another class": func(db *v1.SampleDB) {
			db.Spec.Storage.WAL = &v1.WALSpec{Size: "2Gi", StorageClassName: &other}
		},
		"tiny":    walOf("100Mi"),
		"no size": walOf("much"),
	} {
		changed := db.DeepCopy()
		change(changed)
		err := w.api.Update(t.Context(), changed)
		if err == nil || !strings.Contains(err.Error(), "storage.wal") {
			t.Errorf("%s: it is not refused: %v", what, err)
		} else {
			t.Logf("%s: %v", what, err)
		}
	}
	without := w.create("y", withoutBackup)
	walOf("1Gi")(without)
	if err := w.api.Update(t.Context(), without); err == nil || !strings.Contains(err.Error(), "restoreFrom") {
		t.Errorf("one is added: %v", err)
	}
}

// WAL volumes grow by themselves, and the data volumes stay as they are.
func TestWALVolumesGrowByThemselves(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), withoutBackup, walOf("1Gi"), growing("2Gi"))
	db = w.fill(w.fill(db, 0, 50), 1, 50)
	for host, answer := range w.agents.answers {
		if answer.Name == "x-1" {
			w.agents.change(host, func(s *protocol.Status) {
				s.WALRoom = &protocol.Room{Size: 1 << 30, Used: 900 << 20, PerDay: new(int64)}
			})
		}
	}
	db = w.reconcile(db)
	if got := w.claimsAsk("data-x-0", "data-x-1", "wal-x-0", "wal-x-1"); !slices.Equal(got,
		[]string{"1Gi", "1Gi", "1280Mi", "1280Mi"}) {
		t.Errorf("the claims ask for %q", got)
	}
	if events := w.drainEvents(); !strings.Contains(events, "the WAL volumes grow by themselves to 1280Mi") {
		t.Errorf("events: %s", events)
	}
	if words := db.Status.InstanceStatuses[1].WAL; words != "87 % of 1.0Gi" {
		t.Errorf("the status says %q", words)
	}
	w.playCluster(db)
	w.edit(db, instances(3))
	if got := w.claimsAsk("wal-x-2"); got[0] != "1280Mi" {
		t.Errorf("a new instance gets %q", got)
	}
}

// WAL volumes go with the data volumes, and stay with them.
func TestWALVolumesGoWithTheData(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), deletes, walOf("1Gi"), func(db *v1.SampleDB) {
		db.Spec.Storage.WhenScaled = v1.ScaleDelete
	})
	db = w.edit(db, instances(1))
	w.observe("x") // the Pod is still there
	db = w.reconcile(db)
	if w.deleting("wal-x-1") {
		t.Fatal("the WAL volume went before its Pod")
	}
	w.playCluster(db)
	db = w.reconcile(db)
	for _, name := range []string{"data-x-1", "wal-x-1"} {
		if w.find(name, &corev1.PersistentVolumeClaim{}) && !w.deleting(name) {
			t.Errorf("%s stays", name)
		}
	}
	w.must(w.api.Delete(t.Context(), db))
	w.reconcile(db)
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	if db = w.reconcile(db); db == nil {
		t.Fatal("the SampleDB went before its volumes")
	}
	for _, name := range []string{"data-x-0", "wal-x-0"} {
		if !w.deleting(name) {
			t.Errorf("%s is not being deleted", name)
		}
	}
}

// With Retain both stay, and the next SampleDB of the name takes both over.
func TestWALVolumesAreTakenOver(t *testing.T) {
	w := newWorld(t)
	retain := func(db *v1.SampleDB) { db.Spec.DeletionPolicy = v1.DeletionRetain }
	db := w.started("x", retain, walOf("1Gi"))
	claim := &corev1.PersistentVolumeClaim{}
	w.read("wal-x-0", claim)
	was := claim.UID
	w.must(w.api.Delete(t.Context(), db))
	w.reconcile(db)
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	if w.reconcile(db) != nil {
		t.Fatal("the SampleDB is still there")
	}
	w.collectGarbage(db)
	w.started("x", deletes, walOf("1Gi"))
	w.read("wal-x-0", claim)
	if claim.UID != was || len(claim.OwnerReferences) != 1 {
		t.Errorf("the WAL volume is %s of %v, and was %s", claim.UID, claim.OwnerReferences, was)
	}
}

// Who gives up the volume of an instance gives up that of its WAL, too: a drill, and kubectl toban rebuild.
func TestAVolumeIsGivenUpWithThatOfItsWAL(t *testing.T) {
	for name, giveUp := range map[string]func(*world, *v1.SampleDB){
		"a drill": func(w *world, db *v1.SampleDB) {
			w.edit(db, func(db *v1.SampleDB) {
				db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
			})
			k := &driller{world: w}
			d := k.ask("d", func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultVolumeLost })
			k.clientsPod(d)
			k.drill(d)
		},
		"a rebuild": func(w *world, _ *v1.SampleDB) {
			_, err := w.command(w.Context(), servers.Rebuild(), "x-1", "--wait=false")
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			db := w.started("x", instances(3), withoutArchive, walOf("1Gi"))
			there := func(claim string) bool {
				found := &corev1.PersistentVolumeClaim{}
				return w.find(claim, found) && found.DeletionTimestamp == nil
			}
			if !there("data-x-1") || !there("wal-x-1") {
				t.Fatal("x-1 has not both of its volumes to begin with")
			}
			giveUp(w, db)
			if there("data-x-1") || there("wal-x-1") {
				t.Error("x-1 still has one of its volumes")
			}
			if !there("wal-x-0") || !there("wal-x-2") {
				t.Error("another instance has lost its WAL volume")
			}
		})
	}
}

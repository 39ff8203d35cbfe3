package api

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func growing(limit string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Storage.Grow = &v1.GrowSpec{Limit: limit} }
}

// fill has the agent of an instance say that so many hundredths of its volume are used, and that it does not fill.
func (w *world) fill(db *v1.SampleDB, ordinal int, hundredths int64) *v1.SampleDB {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.read(naming.Claim(db.Name, ordinal), claim)
	size := claim.Status.Capacity.Storage().Value()
	for host, answer := range w.agents.answers {
		if answer.Name == naming.Instance(db.Name, ordinal) {
			w.agents.change(host, func(s *protocol.Status) {
				s.Room = &protocol.Room{Size: size, Used: size / 100 * hundredths, PerDay: new(int64)}
			})
		}
	}
	return w.reconcile(db)
}

// requested is what the volume of an instance asks for.
func (w *world) requested(db *v1.SampleDB, ordinal int) string {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.read(naming.Claim(db.Name, ordinal), claim)
	return claim.Spec.Resources.Requests.Storage().String()
}

func (w *world) expectSize(db *v1.SampleDB, instances int, size string) {
	w.Helper()
	if db.Status.Storage == nil || db.Status.Storage.Size != size {
		w.Errorf("the size in force is %+v, want %s", db.Status.Storage, size)
	}
	for i := range instances {
		if got := w.requested(db, i); got != size {
			w.Errorf("the volume of instance %d asks for %s, want %s", i, got, size)
		}
	}
}

// One volume gets short: all of them grow, the spec stays as it is, and the size in force survives what users change.
func TestVolumesGrowByThemselvesUpToTheLimit(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), withoutBackup, growing("2Gi"))
	w.expectSize(db, 2, "1Gi")
	db = w.fill(w.fill(db, 0, 50), 1, 50)
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionTrue, v1.ReasonRoomEnough)
	w.expectSize(db, 2, "1Gi")
	w.drainEvents()

	db = w.fill(db, 1, 85)
	w.expectSize(db, 2, "1280Mi")
	if db.Spec.Storage.Size != "1Gi" || db.Status.Storage.GrownAt == nil {
		t.Errorf("the spec has %s, and it has grown at %v", db.Spec.Storage.Size, db.Status.Storage.GrownAt)
	}
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionFalse, v1.ReasonResizing)
	if events := w.drainEvents(); strings.Count(events, "Growing") != 1 || !strings.Contains(events, "data-x-1") {
		t.Errorf("events: %s", events)
	}
	db = w.reconcile(db) // the storage has done nothing yet
	w.expectSize(db, 2, "1280Mi")
	w.playCluster(db)
	db = w.fill(w.fill(db, 1, 68), 0, 40)
	w.expect(db, v1.ConditionStorageReady, metav1.ConditionTrue, v1.ReasonBound)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if got := w.agents.configs[len(w.agents.configs)-1].Parameters["max_wal_size"]; got != "128MB" {
		t.Errorf("max_wal_size is %s, want a tenth of the size in force", got)
	}

	// A larger size of the user's counts, one between the two does not; what is lost of the status the volumes say.
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Size = "1100Mi" })
	w.expectSize(db, 2, "1280Mi")
	db.Status.Storage = nil
	w.must(w.api.Status().Update(t.Context(), db))
	db = w.edit(db, instances(3))
	w.expectSize(db, 3, "1280Mi")
	for range 3 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Size = "1300Mi" })
	w.expectSize(db, 3, "1300Mi")
	w.playCluster(db)

	// When it last grew is lost with the status. The next growth follows soon and is larger, but not beyond the limit.
	db = w.fill(db, 0, 85)
	w.expectSize(db, 3, "1664Mi")
	w.playCluster(db)
	db = w.fill(db, 0, 85) // the file system of the other has not followed yet
	w.expectSize(db, 3, "1664Mi")
	db = w.fill(db, 1, 40)
	w.expectSize(db, 3, "2Gi")
	w.playCluster(db)
	db = w.fill(w.fill(db, 1, 40), 0, 85)
	if m := w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonGrowthLimitReached); !strings.Contains(m,
		"data-x-0") || !strings.Contains(m, "2Gi") {
		t.Errorf("it says: %s", m)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)

	// Without grow, and with a lower limit, the size in force stays, also for what is new.
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Storage.Grow = nil; db.Spec.Instances = 4 })
	w.expectSize(db, 4, "2Gi")
	w.playCluster(db)
	db = w.fill(db, 0, 95)
	w.expectSize(db, 4, "2Gi")
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonNearlyFull)
	db = w.edit(db, growing("1800Mi"))
	w.expectSize(db, 4, "2Gi")
	w.drainEvents()
	db = w.fill(db, 0, 40)
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionTrue, v1.ReasonRoomEnough)
	if events := w.drainEvents(); !strings.Contains(events, "RoomAgain") {
		t.Errorf("events: %s", events)
	}
}

// What keeps volumes from growing is told in HasRoom, and nothing else is kept from being done.
func TestWhatKeepsVolumesFromGrowingIsTold(t *testing.T) {
	t.Run("the class", func(t *testing.T) {
		w := newWorld(t)
		w.storageClass("fixed", false, false)
		db := w.fill(w.started("x", withoutBackup, inClass("fixed"), growing("2Gi")), 0, 10)
		if m := w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse,
			v1.ReasonGrowthRefused); !strings.Contains(m, "StorageClass fixed has no allowVolumeExpansion") {
			t.Errorf("it says: %s", m)
		}
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	})
	t.Run("a limit of the namespace", func(t *testing.T) {
		w := newWorld(t)
		db := w.started("x", instances(2), withoutBackup, growing("2Gi"))
		w.must(w.api.Create(t.Context(), &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "small"},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypePersistentVolumeClaim,
				Max:  corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			}}},
		}))
		w.until("the limit counts", func() bool {
			db = w.fill(db, 0, 85)
			return db.Status.Storage.Size != "1Gi" ||
				strings.Contains(messageOf(db, v1.ConditionHasRoom), "maximum storage")
		})
		w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonGrowthRefused)
		w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
		w.expectSize(db, 2, "1Gi")
	})
	t.Run("what nobody knows", func(t *testing.T) {
		w := newWorld(t)
		db := w.fill(w.started("x", instances(2), withoutBackup, growing("2Gi")), 0, 50)
		w.agents.change("10.1.0.1", func(s *protocol.Status) { s.Room = nil })
		db = w.reconcile(db)
		w.expectSize(db, 2, "1Gi")
		if v := db.Status.InstanceStatuses[0].Volume; v == nil || v.UsedPercent < 49 {
			t.Errorf("what was known is forgotten: %+v", v)
		}
	})
}

// How full a volume is changes all the time; the status is written only where that says something.
func TestTheRoomOfAVolumeIsSeldomWritten(t *testing.T) {
	w := newWorld(t)
	db := w.fill(w.started("x", withoutBackup), 0, 50)
	w.reconcile(db)
	w.writes.take()
	for _, used := range []int64{51, 49, 52, 50, 53, 48, 54} {
		db = w.fill(db, 0, used)
	}
	for _, write := range w.writes.take() {
		if !strings.HasPrefix(write, "POST ") { // what exists is refused
			t.Errorf("there is a %s", write)
		}
	}
	if db = w.fill(db, 0, 60); db.Status.InstanceStatuses[0].Volume.UsedPercent < 59 {
		t.Errorf("the status has %+v", db.Status.InstanceStatuses[0].Volume)
	}
}

func messageOf(db *v1.SampleDB, kind string) string {
	for _, c := range db.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

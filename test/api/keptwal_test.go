package api

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// keeps has the agent of an instance say for whom it keeps WAL, up to 256 MiB for each.
func (w *world) keeps(db *v1.SampleDB, ordinal int, slots ...protocol.Slot) *v1.SampleDB {
	w.Helper()
	return w.saysKept(db, ordinal, &protocol.KeptWAL{Limit: 256 << 20, Slots: slots})
}

func (w *world) saysKept(db *v1.SampleDB, ordinal int, kept *protocol.KeptWAL) *v1.SampleDB {
	w.Helper()
	for host, answer := range w.agents.answers {
		if answer.Name == naming.Instance(db.Name, ordinal) {
			w.agents.change(host, func(s *protocol.Status) { s.KeptWAL = kept })
		}
	}
	return w.reconcile(db)
}

// A slot that keeps much WAL is told with what to do, once, and that it is away again. What a standby keeps is its own.
func TestWhatKeepsWALIsToldOnce(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2), withoutBackup)
	slot := func(name string, mib int64) protocol.Slot { return protocol.Slot{Name: name, Bytes: mib << 20} }
	db = w.fill(w.fill(db, 0, 30), 1, 30)
	db = w.keeps(w.keeps(db, 0, slot("mine", 96)), 1, slot("theirs", 200))
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionTrue, v1.ReasonRoomEnough)
	w.drainEvents()

	db = w.keeps(db, 0, slot("mine", 144))
	m := w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonWALKept)
	for _, words := range []string{
		"x-0 keeps 128Mi of WAL for the replication slot mine, which nobody reads",
		"pg_drop_replication_slot('mine')", "Beyond 256Mi (max_slot_wal_keep_size) the slot is lost",
	} {
		if !strings.Contains(m, words) || strings.Contains(m, "theirs") {
			t.Errorf("it says %q, want %q", m, words)
		}
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if events := w.drainEvents(); strings.Count(events, v1.ReasonWALKept) != 1 {
		t.Errorf("events: %s", events)
	}
	version := db.ResourceVersion
	if db = w.keeps(db, 0, slot("mine", 176)); db.ResourceVersion != version {
		t.Error("the status is written for a bit more")
	}

	// It has not looked after a restart: what was told stays. Then it is the other's slot, and then nothing.
	db = w.saysKept(db, 0, nil)
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonWALKept)
	db = w.keeps(db, 0, slot(naming.Slot("x-1"), 144))
	if m := w.expect(db, v1.ConditionHasRoom, metav1.ConditionFalse, v1.ReasonWALKept); !strings.Contains(m,
		"for x-1, which does not receive it") {
		t.Errorf("it says %q", m)
	}
	if events := w.drainEvents(); strings.Contains(events, "RoomAgain") {
		t.Errorf("events: %s", events)
	}
	db = w.keeps(db, 0)
	w.expect(db, v1.ConditionHasRoom, metav1.ConditionTrue, v1.ReasonRoomEnough)
	w.expectEvent("RoomAgain", "no volume is nearly full")
}

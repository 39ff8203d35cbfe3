package servers

import (
	"testing"
	"time"

	v1 "toban.dev/api/v1"
)

// A start in a window says that it does not count, and one of a database that sleeps wakes it.
func TestWhatAStartChanges(t *testing.T) {
	now := time.Date(2026, 11, 24, 21, 0, 0, 0, time.FixedZone("", 9*3600))
	db := &v1.SampleDB{}
	if got := string(stopPatch(db, false, now)); got != `{"spec":{"stopped":false}}` {
		t.Error(got)
	}
	db.Spec.StopWindows = []v1.Window{{}}
	asleep := &v1.SampleDB{Spec: v1.SampleDBSpec{SleepAfter: "1h"}}
	if got := string(stopPatch(db, true, now)); got != `{"spec":{"stopped":true}}` {
		t.Error(got)
	}
	want := `{"metadata":{"annotations":{"toban.dev/started":"2026-11-24T12:00:00Z"}},"spec":{"stopped":false}}`
	for _, db := range []*v1.SampleDB{db, asleep} {
		if got := string(stopPatch(db, false, now)); got != want {
			t.Error(got)
		}
	}
}

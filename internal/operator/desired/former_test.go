package desired

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Which version ran at a moment follows from when each was left, or as far as that is not known, from what it has.
func TestWhichArchiveHasAMoment(t *testing.T) {
	day := func(n int) *metav1.Time {
		at := metav1.NewTime(time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC))
		return &at
	}
	status := &v1.BackupStatus{Version: 18, Former: []v1.FormerArchive{
		{Version: 17, Until: day(20)},
		{Version: 15, Windows: []v1.RestoreWindow{{Branch: 2, Latest: day(10)}, {Branch: 1, Latest: day(5)}}},
	}}
	for n, want := range map[int]int32{1: 15, 7: 15, 10: 15, 11: 17, 20: 17, 21: 0} {
		got := int32(0)
		if f := FormerAt(status, day(n).Time); f != nil {
			got = f.Version
		}
		if got != want {
			t.Errorf("on day %d it ran %d, want %d", n, got, want)
		}
	}
	if FormerAt(nil, day(1).Time) != nil || FormerOf(status, 15) != &status.Former[1] || FormerOf(status, 18) != nil {
		t.Error("what there is not is found, or what there is is not")
	}
}

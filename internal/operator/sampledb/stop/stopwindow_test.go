package stop

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

func TestPlanStop(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 21, 0, 0, 0, time.UTC)
	night := v1.Window{Start: "20:00", Duration: metav1.Duration{Duration: 11 * time.Hour}}
	lunch := v1.Window{Start: "12:00", Duration: metav1.Duration{Duration: time.Hour}}
	morning := now.Add(10 * time.Hour)
	for name, c := range map[string]struct {
		stopped bool
		windows []v1.Window
		created time.Time
		started string
		want    stopPlan
		err     string
	}{
		"nothing is said":          {want: stopPlan{}},
		"stopped":                  {stopped: true, want: stopPlan{wanted: true}},
		"stopped, and in a window": {stopped: true, windows: []v1.Window{night}, want: stopPlan{wanted: true}},
		"in a window": {windows: []v1.Window{lunch, night},
			want: stopPlan{wanted: true, until: morning, Next: morning}},
		"out of it": {windows: []v1.Window{lunch}, want: stopPlan{Next: now.Add(15 * time.Hour)}},
		"started in it": {windows: []v1.Window{night}, started: "2026-11-24T20:30:00Z",
			want: stopPlan{Next: now.Add(23 * time.Hour)}},
		"started before it": {windows: []v1.Window{night}, started: "2026-11-24T19:30:00Z",
			want: stopPlan{wanted: true, until: morning, Next: morning}},
		"created in it": {windows: []v1.Window{night}, created: now.Add(-time.Minute),
			want: stopPlan{Next: now.Add(23 * time.Hour)}},
		"created in it, after it was started": {windows: []v1.Window{night}, created: now.Add(-time.Minute),
			started: "2026-11-24T19:30:00Z", want: stopPlan{Next: now.Add(23 * time.Hour)}},
		"a start that can't be read": {windows: []v1.Window{night}, started: "now", err: naming.AnnotationStarted},
		"a window that can't be read": {windows: []v1.Window{lunch, {Start: "x"}},
			err: "spec.stopWindows[1].start \"x\" must be a time of day"},
	} {
		db := &v1.SampleDB{}
		db.Spec.Stopped, db.Spec.StopWindows, db.CreationTimestamp = c.stopped, c.windows, metav1.NewTime(c.created)
		if c.started != "" {
			db.Annotations = map[string]string{naming.AnnotationStarted: c.started}
		}
		got, err := topicsOf(world.Core{DB: db, Now: now}).planStop()
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What can't be read changes nothing.
func TestStopWindowsThatCanNotBeRead(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]bool{
		"": false, v1.StopStopped: true, v1.StopClosing: true, v1.StopStarting: false,
	} {
		s := topicsOf(world.Core{DB: &v1.SampleDB{Spec: v1.SampleDBSpec{StopWindows: []v1.Window{{Start: "x"}}}}})
		if step != "" {
			s.Stop = &v1.StopStatus{Step: step}
		}
		if err := s.ApplyStopWindows(t.Context()); err == nil || s.StopPlan.wanted != want {
			t.Errorf("%q: %+v, %v", step, s.StopPlan, err)
		}
	}
}

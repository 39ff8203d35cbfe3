package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRefusedPods(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	event := func(reason, message string, after time.Duration) corev1.Event {
		return corev1.Event{Reason: reason, Message: message, LastTimestamp: metav1.NewTime(start.Add(after))}
	}
	series := event("FailedCreate", "exceeded quota", 0)
	series.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(start.Add(time.Minute))}
	made := event("SuccessfulCreate", "made", time.Second)
	for name, c := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"nothing is known":             {nil, ""},
		"it is refused":                {[]corev1.Event{event("FailedCreate", "exceeded quota", 0)}, "exceeded quota"},
		"it was refused, and made":     {[]corev1.Event{made, event("FailedCreate", "exceeded quota", 0)}, ""},
		"it was made, and is refused":  {[]corev1.Event{made, event("FailedCreate", "q", time.Minute)}, "q"},
		"it is refused again":          {[]corev1.Event{made, series}, "exceeded quota"},
		"other events say nothing":     {[]corev1.Event{event("RecreatingFailedPod", "x", time.Hour)}, ""},
		"others do not hide a refusal": {[]corev1.Event{event("FailedCreate", "q", 0), event("Other", "x", 1)}, "q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := refusedPods(c.events); got != c.want {
				t.Errorf("it says %q, not %q", got, c.want)
			}
		})
	}
}

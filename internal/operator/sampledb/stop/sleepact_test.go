package stop

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// Who reads from a reader uses the database, and a reader that does not say so is unknown as an instance is.
func TestInstancesAndReadersSayWhetherTheyAreUsed(t *testing.T) {
	for name, c := range map[string]struct {
		instance, reader time.Duration // negative where it does not say so
		least            time.Duration
		unknown          []string
	}{
		"nobody is used":              {time.Hour, 2 * time.Hour, time.Hour, nil},
		"the reader is used":          {time.Hour, time.Second, time.Second, nil},
		"the reader does not say so":  {time.Hour, -1, time.Hour, []string{"x-readers-0"}},
		"the instance is used":        {time.Second, time.Hour, time.Second, nil},
		"the instance does not know":  {-1, time.Hour, time.Hour, []string{"x-0"}},
		"nobody says how it is there": {-1, -1, 0, []string{"x-0", "x-readers-0"}},
	} {
		says := func(idle time.Duration) protocol.Status {
			if idle < 0 {
				return protocol.Status{}
			}
			return protocol.Status{Idle: &idle}
		}
		s := topicsOf(world.Core{Config: protocol.Config{Members: []protocol.Member{{Name: "x-0"}}}})
		s.Seen.Answers = map[string]protocol.Status{"x-0": says(c.instance)}
		s.Seen.Readers.Pods = map[int]*corev1.Pod{0: {ObjectMeta: metav1.ObjectMeta{Name: "x-readers-0"}}}
		s.Seen.Readers.Answers = map[string]protocol.Status{"x-readers-0": says(c.reader)}
		if least, unknown := s.idle(); least != c.least || !slices.Equal(unknown, c.unknown) {
			t.Errorf("%s: idle for %s, unknown %q", name, least, unknown)
		}
	}
}

// toldBy is what poolers tell, by host.
type toldBy map[string]protocol.PoolTells

func (p toldBy) Waiting(_ types.UID, hosts []string, _ protocol.Config) map[string]protocol.PoolTells {
	out := map[string]protocol.PoolTells{}
	for _, host := range hosts {
		if tells, known := p[host]; known {
			out[host] = tells
		}
	}
	return out
}

// All poolers that are there to stay count: one that is silent is told of, and what the others say is added.
func TestWhatThePoolersSayOfTheirClients(t *testing.T) {
	pod := func(name, host string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIP: host}}
	}
	going, now := pod("c", "10.0.0.3"), metav1.Now()
	going.DeletionTimestamp = &now
	tells := toldBy{"10.0.0.1": {Held: true, Waiting: 1}, "10.0.0.2": {Held: true, Waiting: 2}, "10.0.0.3": {Active: 9}}
	for name, c := range map[string]struct {
		pods    []corev1.Pod
		waiting int
		unheard []string
		held    bool
	}{
		"both say it":            {[]corev1.Pod{pod("a", "10.0.0.1"), pod("b", "10.0.0.2"), going}, 3, nil, true},
		"one is silent":          {[]corev1.Pod{pod("a", "10.0.0.1"), pod("d", "10.0.0.4")}, 1, []string{"d"}, false},
		"one has no address yet": {[]corev1.Pod{pod("a", "10.0.0.1"), pod("e", "")}, 1, []string{"e"}, false},
		"none is there":          {nil, 0, nil, false},
	} {
		s, v := topicsOf(world.Core{DB: &v1.SampleDB{}}), sleepView{}
		s.Poolers, s.Seen.PoolerPods = tells, c.pods
		s.hearPoolers(&v)
		if v.waiting != c.waiting || v.active != 0 || !slices.Equal(v.unheard, c.unheard) || v.held != c.held ||
			s.held != c.held {
			t.Errorf("%s: it is seen as %+v", name, v)
		}
	}
}

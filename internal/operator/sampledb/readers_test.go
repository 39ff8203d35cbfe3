package sampledb

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

func TestHowManyReadersThereAre(t *testing.T) {
	count := func(n int32) *v1.ReadersSpec { return &v1.ReadersSpec{Count: n} }
	auto := &v1.ReadersSpec{Autoscale: &v1.ReadersAutoscale{Min: 2, Max: 5, CPU: 70}}
	for name, c := range map[string]struct {
		view             readersView
		wanted, replicas int
		reason           string
	}{
		"none are wanted":                     {readersView{}, 0, 0, ""},
		"the first come two at a time":        {readersView{spec: count(7)}, 7, 2, ""},
		"two more while one is ready":         {readersView{spec: count(7), have: 2, ready: 1}, 7, 3, ""},
		"one that can't come keeps none away": {readersView{spec: count(7), have: 6, ready: 5}, 7, 7, ""},
		"those that are there stay when none of them is ready": {
			readersView{spec: count(7), have: 6}, 7, 6, ""},
		"fewer go at once, ready or not": {readersView{spec: count(1), have: 6}, 1, 1, ""},
		"all go":                         {readersView{spec: count(0), have: 6, ready: 6}, 0, 0, ""},
		"a stop removes them": {
			readersView{spec: count(3), have: 3, stopped: true}, 3, 0, v1.ReasonStopped},
		"before there is data there are none":   {readersView{spec: count(3), later: "x"}, 3, 0, v1.ReasonReadersLater},
		"an autoscaler's number stays":          {readersView{spec: auto, have: 4, ready: 4}, 4, 4, ""},
		"not below its least":                   {readersView{spec: auto, have: 1, ready: 1}, 2, 2, ""},
		"nor above its greatest":                {readersView{spec: auto, have: 9, ready: 9}, 5, 5, ""},
		"after a stop it begins with the least": {readersView{spec: auto}, 2, 2, ""},
		"no more where an agent does not know": {
			readersView{spec: count(3), have: 1, ready: 1, old: "db-1"}, 3, 1, v1.ReasonAgentsTooOld},
		"fewer also where an agent does not know": {readersView{spec: count(0), have: 1, old: "db-1"}, 0, 0, ""},
	} {
		d := decideReaders(c.view)
		if d.wanted != c.wanted || d.replicas != c.replicas || d.reason != c.reason {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A reader is ready by its agent's own word, as long as its Pod is to stay.
func TestWhenAReaderIsReady(t *testing.T) {
	good := protocol.Status{Name: "db-readers-0", Role: protocol.RoleStandby, Ready: true, Streaming: true}
	for name, c := range map[string]struct {
		change func(*readers, *protocol.Status)
		want   bool
	}{
		"it streams":                   {func(*readers, *protocol.Status) {}, true},
		"its stream begins anew":       {func(_ *readers, s *protocol.Status) { s.Streaming = false }, true},
		"it has not streamed for long": {func(_ *readers, s *protocol.Status) { s.Ready = false }, false},
		"it does not answer":           {func(_ *readers, s *protocol.Status) { s.Name = "db-readers-1" }, false},
		"it copies":                    {func(_ *readers, s *protocol.Status) { s.Ready, s.Role = false, "" }, false},
		"it has no Pod":                {func(x *readers, _ *protocol.Status) { x.pods = nil }, false},
		"its Pod is to be gone": {func(x *readers, _ *protocol.Status) {
			now := metav1.Now()
			x.pods[0].DeletionTimestamp = &now
		}, false},
	} {
		said := good
		x := &readers{pods: map[int]*corev1.Pod{0: {ObjectMeta: metav1.ObjectMeta{Name: "db-readers-0"}}}}
		c.change(x, &said)
		x.answers = map[string]protocol.Status{said.Name: said}
		if got := x.ready(0); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Nobody tells that a reader streams, so it is looked for: soon at first, and then more seldom.
func TestReadersThatDoNotServeAreLookedAtAgain(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		want   time.Duration
	}{
		"they serve":          {metav1.ConditionTrue, v1.ReasonReadersServe, pauseResting},
		"they come":           {metav1.ConditionFalse, v1.ReasonReadersComing, pauseWorking},
		"stopped on purpose":  {metav1.ConditionFalse, v1.ReasonStopped, pauseResting},
		"it is not known yet": {metav1.ConditionUnknown, v1.ReasonUnknown, pauseWorking},
	} {
		s := scopeOf(core{now: now, reported: v1.SampleDBStatus{Conditions: []metav1.Condition{{
			Type: v1.ConditionReadersReady, Status: c.status, Reason: c.reason, LastTransitionTime: metav1.NewTime(now),
		}}}})
		if got := s.readersPause(); got != c.want {
			t.Errorf("%s: looked at again after %s, want %s", name, got, c.want)
		}
		s.now = now.Add(time.Hour)
		if got := s.readersPause(); c.want == pauseWorking && got != pauseStuckLong {
			t.Errorf("%s, after an hour: looked at again after %s, want %s", name, got, pauseStuckLong)
		}
	}
	if got := (scopeOf(core{now: now})).readersPause(); got != pauseResting {
		t.Errorf("without readers: looked at again after %s", got)
	}
}

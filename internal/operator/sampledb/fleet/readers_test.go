package fleet

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
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

// Nobody tells that a reader streams, so it is looked for: soon at first, and then more seldom.
func TestReadersThatDoNotServeAreLookedAtAgain(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		want   time.Duration
	}{
		"they serve":          {metav1.ConditionTrue, v1.ReasonReadersServe, world.PauseResting},
		"they come":           {metav1.ConditionFalse, v1.ReasonReadersComing, world.PauseWorking},
		"stopped on purpose":  {metav1.ConditionFalse, v1.ReasonStopped, world.PauseResting},
		"it is not known yet": {metav1.ConditionUnknown, v1.ReasonUnknown, world.PauseWorking},
	} {
		s := topicsOf(world.Core{Now: now, Reported: v1.SampleDBStatus{Conditions: []metav1.Condition{{
			Type: v1.ConditionReadersReady, Status: c.status, Reason: c.reason, LastTransitionTime: metav1.NewTime(now),
		}}}})
		if got := s.ReadersPause(); got != c.want {
			t.Errorf("%s: looked at again after %s, want %s", name, got, c.want)
		}
		s.Now = now.Add(time.Hour)
		if got := s.ReadersPause(); c.want == world.PauseWorking && got != world.PauseStuckLong {
			t.Errorf("%s, after an hour: looked at again after %s, want %s", name, got, world.PauseStuckLong)
		}
	}
	if got := (topicsOf(world.Core{Now: now})).ReadersPause(); got != world.PauseResting {
		t.Errorf("without readers: looked at again after %s", got)
	}
}

package fleet

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// The leader keeps an instance that is to go while it would have no majority without it. Which instance has to come
// back is told, also where that one is what keeps the SampleDB from being ready.
func TestWhatScalingWaitsForIsTold(t *testing.T) {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	db.Spec.Instances = 2
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	s := topicsOf(world.Core{DB: db, Seen: world.Observed{
		Pods: map[int]*corev1.Pod{0: pod("x-0"), 1: pod("x-1"), 2: pod("x-2")},
		Answers: map[string]protocol.Status{
			"x-0": {
				Name: "x-0", Role: protocol.RolePrimary, Ready: true, Voters: []string{"x-0", "x-1", "x-2"},
			},
			"x-2": {Name: "x-2", Role: protocol.RoleStandby, Ready: true, Streaming: true},
		},
	}, Outcomes: world.Outcomes{InitializedAt: &metav1.Time{}}})
	s.Config.Members, s.Config.SystemIdentifier = make([]protocol.Member, 2), "7"
	replicas := int32(3)
	s.Seen.Set = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}
	s.Scaling = scale(s.size())
	if s.Scaling.Reason != scalingVoting || !strings.Contains(s.Scaling.Message, "x-1 has to be ready first") {
		t.Errorf("%+v", s.Scaling)
	}
	v := s.AllInstances()
	if v == nil || !strings.Contains(v.Message, "waits to go from 3 to 2 instances: "+s.Scaling.Message) {
		t.Errorf("not all instances are ready: %+v", v)
	}
	s.Seen.Answers["x-1"] = protocol.Status{Name: "x-1", Role: protocol.RoleStandby, Ready: true, Streaming: true}
	if got := scale(s.size()); strings.Contains(got.Message, "has to be ready") {
		t.Errorf("all that stay are ready: %+v", got)
	}
}

func TestScaleLetsGoOnlyOfWhatIsNotMissed(t *testing.T) {
	three := []string{"x-0", "x-1", "x-2"}
	for name, c := range map[string]struct {
		size      size
		replicas  int
		reason    string
		successor string
	}{
		"the first time":                    {size{want: 3}, 3, scalingCurrent, ""},
		"as many as wanted":                 {size{have: 3, want: 3, data: true}, 3, scalingCurrent, ""},
		"more are wanted: at once":          {size{have: 1, want: 3, data: true}, 3, scalingCurrent, ""},
		"fewer, of which none has any data": {size{have: 3, want: 1}, 1, scalingNoData, ""},
		"nobody is known to take writes": {
			size{have: 3, want: 1, data: true, ready: []string{"x-0"}}, 3, scalingNoPrimary, "",
		},
		"the primary does not say who counts": {
			size{have: 3, want: 1, data: true, primary: "x-0"}, 3, scalingUnknown, "",
		},
		"those to go still count": {
			size{have: 3, want: 1, data: true, primary: "x-0", voters: three}, 3, scalingVoting, "",
		},
		"one of those to go still counts": {
			size{have: 3, want: 1, data: true, primary: "x-0", voters: three[:2]}, 3, scalingVoting, "",
		},
		"those to go count no more": {
			size{have: 3, want: 1, data: true, primary: "x-0", voters: three[:1]}, 1, scalingReleased, "",
		},
		"of those that stay some do not count": {
			size{have: 3, want: 2, data: true, primary: "x-1", voters: []string{"x-1"}}, 2, scalingReleased, "",
		},
		"the primary is to go": {
			size{have: 3, want: 2, data: true, primary: "x-2", voters: three, ready: three[:2]}, 3,
			scalingHandOver, "x-0"},
		"the primary is to go, and the first that stays is not ready": {
			size{have: 3, want: 2, data: true, primary: "x-2", voters: three, ready: three[1:2]}, 3,
			scalingHandOver, "x-1"},
		"the primary is to go, and the first that stays does not count": {
			size{have: 3, want: 2, data: true, primary: "x-2", voters: three[1:], ready: three[:2]}, 3,
			scalingHandOver, "x-1"},
		"the primary is to go, and none that stays is ready": {
			size{have: 3, want: 2, data: true, primary: "x-2", voters: three}, 3, scalingNobody, ""},
		"the primary is to go, and none that stays counts": {
			size{have: 2, want: 1, data: true, primary: "x-1", voters: three[1:2], ready: three[:1]}, 2,
			scalingNobody, ""},
		"the primary is to go, and does not say who counts": {
			size{have: 2, want: 1, data: true, primary: "x-1", ready: three[:1]}, 2, scalingUnknown, ""},
		"those to go count no more, and a restore is under way": {
			size{have: 3, want: 1, data: true, restoring: true, primary: "x-0", voters: three[:1]},
			3, scalingRestoring, ""},
		"the primary is to go, and a restore is under way": {
			size{have: 3, want: 1, data: true, restoring: true, primary: "x-2", voters: three, ready: three[:1]},
			3, scalingRestoring, ""},
		"nobody leads while all start with what was restored": {
			size{have: 3, want: 1, data: true, restoring: true}, 3, scalingRestoring, "",
		},
		"more are wanted during a restore": {
			size{have: 1, want: 3, data: true, restoring: true}, 3, scalingCurrent, "",
		},
		"an ordinal of two digits is a number and no text": {
			size{have: 11, want: 9, data: true, primary: "x-0", voters: []string{"x-0", "x-10"}}, 11,
			scalingVoting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := scale(c.size)
			if d.Replicas != c.replicas || d.Reason != c.reason || d.Successor != c.successor {
				t.Errorf("decided %+v, want %d for %s, successor %q", d, c.replicas, c.reason, c.successor)
			}
			if waits := c.replicas > c.size.want; waits != (d.Message != "") {
				t.Errorf("it waits: %v, and says %q", waits, d.Message)
			}
		})
	}
}

package fleet

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

// That one was late is not said for ever because another, which was not, can't be heard.
func TestOnTimeDoesNotStayFalseForOneThatIsSilent(t *testing.T) {
	none, slack := time.Duration(0), 4*time.Second
	s := three(&protocol.Status{Slack: &none}, &protocol.Status{Slack: &slack}, nil)
	late := s.onTime()
	if late.Reason != v1.ReasonMachineBusy {
		t.Fatalf("it says %+v", late)
	}
	s.DB.Status.Conditions = []metav1.Condition{
		{Type: v1.ConditionOnTime, Status: late.Status, Reason: late.Reason, Message: late.Message},
	}
	s.Seen.Answers["x-1"] = protocol.Status{Name: "x-1", Slack: &none}
	if got := s.onTime(); got.Reason != "" {
		t.Errorf("x-1 is on time, and it says %+v", got)
	}
	delete(s.Seen.Answers, "x-1")
	s.Seen.Answers["x-2"] = protocol.Status{Name: "x-2", Slack: &none}
	if got := s.onTime(); got != late {
		t.Errorf("x-1 is not heard, and it says %+v", got)
	}
}

// behind is an instance that has so much WAL to replay.
func behind(bytes uint64) *protocol.Status {
	s := worldtest.Slack(0)
	s.Election.Replaying, s.Election.Unreplayed = true, bytes
	return s
}

// three is ThreeOf, with its topics.
func three(answers ...*protocol.Status) *Topics { return topicsOn(worldtest.ThreeOf(answers...)) }

func TestWhetherThingsComeOnTimeOnTheMachines(t *testing.T) {
	earlier := func() *protocol.Status { return &protocol.Status{} }
	before := func(s *Topics) *Topics {
		worldtest.Was(s.Act, v1.ConditionOnTime, "False", v1.ReasonMachineBusy, time.Minute)
		world.Condition(s.DB.Status, v1.ConditionOnTime).Message = busySentence([]string{"x-1"}, time.Second, false)
		return s
	}
	stopped := three(nil, nil, nil)
	stopped.Stop = &v1.StopStatus{Step: v1.StopStopped}
	for name, c := range map[string]struct {
		s      *Topics
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"all do": {three(worldtest.Slack(0), worldtest.Slack(0), worldtest.Slack(0)), "True", v1.ReasonOnTime,
			"nothing comes late"},
		"not on one": {
			three(worldtest.Slack(0), worldtest.Slack(time.Second), worldtest.Slack(0)), "False", v1.ReasonMachineBusy,
			"the machine of x-1 is busy, or was in the last minutes: what happens there comes late, and a failover " +
				"may take up to 2s longer",
		},
		"not on two, and the longest counts": {
			three(worldtest.Slack(2*time.Second), worldtest.Slack(0), worldtest.Slack(8*time.Second)), "False",
			v1.ReasonMachineBusy,
			"the machines of x-0, x-2 are busy, or were in the last minutes: what happens there comes late, and a " +
				"failover may take up to 16s longer",
		},
		"not on the only one": {
			three(worldtest.Slack(time.Second)), "False", v1.ReasonMachineBusy,
			"the machine of x-0 is busy, or was in the last minutes: what happens there comes late, and it takes " +
				"longer until a server that hangs is noticed",
		},
		"one has much to replay": {
			three(worldtest.Slack(0), behind(1<<30), behind(1<<20)), "False", v1.ReasonReplayBehind,
			"to be replayed yet on x-1, which can't lead",
		},
		"one has much to replay, and another machine is busy": {
			three(worldtest.Slack(time.Second), behind(1<<30), worldtest.Slack(0)), "False", v1.ReasonMachineBusy,
			"x-0",
		},
		"not on one, and another is not heard": {
			three(nil, worldtest.Slack(time.Second), worldtest.Slack(0)), "False", v1.ReasonMachineBusy, "x-1",
		},
		"one is not heard, and nothing was known": {three(worldtest.Slack(0), nil, worldtest.Slack(0)), "", "", ""},
		"the one that was late is not heard": {
			before(three(worldtest.Slack(0), nil, worldtest.Slack(0))), "False", v1.ReasonMachineBusy, "",
		},
		"nobody is heard":                 {before(three(nil, nil, nil)), "False", v1.ReasonMachineBusy, ""},
		"agents of an earlier release":    {before(three(earlier(), earlier(), nil)), "", "", ""},
		"one agent of an earlier release": {three(earlier(), worldtest.Slack(0), worldtest.Slack(0)), "", "", ""},
		"it is stopped":                   {before(stopped), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.s.onTime()
			if v.Status != c.status || v.Reason != c.reason || !strings.Contains(v.Message, c.says) {
				t.Errorf("it says %+v", v)
			}
		})
	}
}

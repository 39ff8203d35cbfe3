package sampledb

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// That one was late is not said for ever because another, which was not, can't be heard.
func TestOnTimeDoesNotStayFalseForOneThatIsSilent(t *testing.T) {
	none, slack := time.Duration(0), 4*time.Second
	s := three(&protocol.Status{Slack: &none}, &protocol.Status{Slack: &slack}, nil)
	late := s.onTime()
	if late.reason != v1.ReasonMachineBusy {
		t.Fatalf("it says %+v", late)
	}
	s.db.Status.Conditions = []metav1.Condition{
		{Type: v1.ConditionOnTime, Status: late.status, Reason: late.reason, Message: late.message},
	}
	s.seen.answers["x-1"] = protocol.Status{Name: "x-1", Slack: &none}
	if got := s.onTime(); got.reason != "" {
		t.Errorf("x-1 is on time, and it says %+v", got)
	}
	delete(s.seen.answers, "x-1")
	s.seen.answers["x-2"] = protocol.Status{Name: "x-2", Slack: &none}
	if got := s.onTime(); got != late {
		t.Errorf("x-1 is not heard, and it says %+v", got)
	}
}

// three is threeOf, with its topics.
func three(answers ...*protocol.Status) *scope { return scopeOn(threeOf(answers...)) }

// threeOf is a SampleDB of three instances whose Pods run, with what their agents answer; nil for one that does not.
func threeOf(answers ...*protocol.Status) *act {
	s := actOf(core{db: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, now: time.Unix(1e9, 0)})
	s.seen.answers, s.seen.pods = map[string]protocol.Status{}, map[int]*corev1.Pod{}
	for i, a := range answers {
		name := fmt.Sprintf("x-%d", i)
		s.config.Members = append(s.config.Members, protocol.Member{Name: name})
		s.seen.pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
		if a != nil {
			a.Name = name
			s.seen.answers[name] = *a
		}
	}
	return s
}

// was gives the status a condition as it was since a time ago.
func was(s *act, kind string, status metav1.ConditionStatus, reason string, ago time.Duration) *act {
	s.db.Status.Conditions = append(s.db.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(s.now.Add(-ago)),
	})
	return s
}

// slack is an agent that says how late things come.
func slack(by time.Duration) *protocol.Status { return &protocol.Status{Slack: &by} }

func TestWhetherThingsComeOnTimeOnTheMachines(t *testing.T) {
	earlier := func() *protocol.Status { return &protocol.Status{} }
	before := func(s *scope) *scope {
		was(s.act, v1.ConditionOnTime, "False", v1.ReasonMachineBusy, time.Minute)
		condition(s.db.Status, v1.ConditionOnTime).Message = busySentence([]string{"x-1"}, time.Second, false)
		return s
	}
	stopped := three(nil, nil, nil)
	stopped.stop = &v1.StopStatus{Step: v1.StopStopped}
	for name, c := range map[string]struct {
		s      *scope
		status metav1.ConditionStatus
		reason string
		says   string
	}{
		"all do": {three(slack(0), slack(0), slack(0)), "True", v1.ReasonOnTime, "nothing comes late"},
		"not on one": {
			three(slack(0), slack(time.Second), slack(0)), "False", v1.ReasonMachineBusy,
			"the machine of x-1 is busy, or was in the last minutes: what happens there comes late, and a failover " +
				"may take up to 2s longer",
		},
		"not on two, and the longest counts": {
			three(slack(2*time.Second), slack(0), slack(8*time.Second)), "False", v1.ReasonMachineBusy,
			"the machines of x-0, x-2 are busy, or were in the last minutes: what happens there comes late, and a " +
				"failover may take up to 16s longer",
		},
		"not on the only one": {
			three(slack(time.Second)), "False", v1.ReasonMachineBusy,
			"the machine of x-0 is busy, or was in the last minutes: what happens there comes late, and it takes " +
				"longer until a server that hangs is noticed",
		},
		"not on one, and another is not heard": {
			three(nil, slack(time.Second), slack(0)), "False", v1.ReasonMachineBusy, "x-1",
		},
		"one is not heard, and nothing was known": {three(slack(0), nil, slack(0)), "", "", ""},
		"the one that was late is not heard": {
			before(three(slack(0), nil, slack(0))), "False", v1.ReasonMachineBusy, "",
		},
		"nobody is heard":                 {before(three(nil, nil, nil)), "False", v1.ReasonMachineBusy, ""},
		"agents of an earlier release":    {before(three(earlier(), earlier(), nil)), "", "", ""},
		"one agent of an earlier release": {three(earlier(), slack(0), slack(0)), "", "", ""},
		"it is stopped":                   {before(stopped), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.s.onTime()
			if v.status != c.status || v.reason != c.reason || !strings.Contains(v.message, c.says) {
				t.Errorf("it says %+v", v)
			}
		})
	}
}

func TestWhatIsSaidOfMachinesChangesSeldom(t *testing.T) {
	begin := time.Unix(1e9, 0)
	busy, busier, well, nothing := no("Busy", "1"), no("Busy", "2"), yes("OnTime", ""), verdict{}
	unheard := verdict{status: metav1.ConditionUnknown}
	busiest := no("Busy", "3")
	weight := map[verdict]time.Duration{busiest: time.Second}
	const minute = time.Minute
	for name, steps := range map[string][]struct {
		at         time.Duration
		next, said verdict
	}{
		"the first word is said at once": {{0, busy, busy}},
		"other words wait":               {{0, busy, busy}, {4 * minute, busier, busy}, {5 * minute, busier, busier}},
		"that all is well waits, and not from the last time that it was not": {
			{0, busy, busy}, {4 * minute, busy, busy}, {5*minute - 1, well, busy}, {5 * minute, well, well},
		},
		"that it is not so any more waits less": {
			{0, well, well}, {29 * time.Second, busy, well}, {30 * time.Second, busy, busy},
		},
		"what goes on and off is told twice in five minutes": {
			{0, busy, busy}, {minute, well, busy}, {2 * minute, busy, busy}, {5 * minute, well, well},
			{6 * minute, busy, busy}, {7 * minute, well, busy}, {10 * minute, well, busy}, {11 * minute, well, well},
		},
		"more of it waits less": {
			{0, busy, busy}, {29 * time.Second, busiest, busy}, {30 * time.Second, busiest, busiest},
			{minute, busy, busiest}, {4 * minute, busy, busiest},
		},
		"what is not known changes nothing for a while": {
			{0, busy, busy}, {29 * time.Second, unheard, busy}, {40 * time.Second, busy, busy},
			{69 * time.Second, unheard, busy}, {70 * time.Second, unheard, nothing}, {80 * time.Second, busier, busier},
		},
		"what is not known is not said": {{0, unheard, nothing}},
		"nothing is said at once, and what comes after it": {
			{0, busy, busy}, {time.Second, nothing, nothing}, {2 * time.Second, busier, busier},
		},
	} {
		var p paced
		for _, c := range steps {
			if got := p.say("db", begin.Add(c.at), quietPause, weight[c.next], c.next); got != c.said {
				t.Errorf("%s: at %s it says %+v", name, c.at, got)
			}
		}
		p.forget("db")
		if got := p.say("db", begin, quietPause, 0, busier); got != busier {
			t.Errorf("%s: of one that was forgotten it says %+v", name, got)
		}
	}
}

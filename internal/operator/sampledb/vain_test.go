package sampledb

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// campaigned is an instance without a leader that has campaigned in vain.
func campaigned(times int, reason string) *protocol.Status {
	return &protocol.Status{
		Role: protocol.RoleStandby, Data: protocol.DataPresent, InVain: times, Reason: reason, Message: "as it is",
	}
}

func TestWhetherElectionsAreInVain(t *testing.T) {
	lost := func(ago time.Duration, answers ...*protocol.Status) *scope {
		return scopeOn(was(threeOf(answers...), v1.ConditionAvailable, "False", v1.ReasonNoPrimary, ago))
	}
	storm := func() *scope {
		return lost(time.Minute, campaigned(21, "Resting"), campaigned(3, "LeaderLost"), campaigned(0, "Resting"))
	}
	leads := campaigned(21, "Leader")
	leads.Role, leads.Ready = protocol.RolePrimary, true
	changed := func(change func(*scope)) *scope {
		s := storm()
		change(s)
		return s
	}
	for name, c := range map[string]struct {
		s    *scope
		says string // "" for nothing
	}{
		"they are":                 {storm(), "instances campaign in vain"},
		"where logs have more":     {storm(), "kubectl toban logs x says which votes are refused"},
		"they are, since a moment": {lost(5*time.Second, campaigned(21, "Resting")), ""},
		"an election is slow":      {lost(time.Minute, campaigned(3, "Resting"), campaigned(3, "Resting")), ""},
		"one is elected":           {lost(time.Minute, campaigned(21, "Resting"), leads), ""},
		"one is not heard":         {lost(time.Minute, campaigned(21, "Resting"), nil), ""},
		"nothing is known of who led": {
			scopeOn(threeOf(campaigned(21, "Resting"), campaigned(21, "Resting"))), "",
		},
		"the machine is busy": {
			changed(func(s *scope) { s.machines = no(v1.ReasonMachineBusy, "the machine of x-2 is busy") }),
			"longer after each time; the machine of x-2 is busy",
		},
		"it is stopped": {changed(func(s *scope) { s.stop = &v1.StopStatus{Step: v1.StopStopped} }), ""},
		"it is deleted": {changed(func(s *scope) { s.db.DeletionTimestamp = &metav1.Time{Time: s.now} }), ""},
		"too many have lost their data": {
			changed(func(s *scope) { s.loss.reason = lossMajority }), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.s.electionsInVain()
			if (v.reason == v1.ReasonElectionsInVain) != (c.says != "") || !strings.Contains(v.message, c.says) {
				t.Fatalf("it says %+v", v)
			}
			c.s.vain = v
			if got := available(c.s); (got == v) != (c.says != "") {
				t.Errorf("Available is %+v", got)
			}
		})
	}
}

// flickers is how often a condition is another one, in its reason or its words, in 75 looks four seconds apart.
func flickers(kind string, answers func(look int) []*protocol.Status) (times int) {
	var remembered memory
	begin := time.Unix(1e9, 0)
	conditions := was(threeOf(), v1.ConditionAvailable, "False", v1.ReasonNoPrimary, time.Minute).db.Status.Conditions
	last := verdict{}
	for n := range 75 {
		s := scopeOn(threeOf(answers(n)...))
		s.now, s.db.Status.Conditions, s.memory = begin.Add(time.Duration(n)*4*time.Second), conditions, &remembered
		s.paceMachines()
		v := available(s)
		if kind == v1.ConditionOnTime {
			v = s.machines
		}
		if v.reason == "" {
			meta.RemoveStatusCondition(&conditions, kind)
		} else {
			meta.SetStatusCondition(&conditions, metav1.Condition{
				Type: kind, Status: v.status, Reason: v.reason, Message: v.message,
				LastTransitionTime: metav1.NewTime(s.now),
			})
		}
		if v != last {
			times, last = times+1, v
		}
	}
	return times
}

// On a starved machine agents answer now and then. What is said of a long time without a leader stays.
func TestConditionsDoNotFlickerWhereAnswersComeAndGo(t *testing.T) {
	without := func(answers []*protocol.Status, which int, is bool) []*protocol.Status {
		if is {
			answers[which] = nil
		}
		return answers
	}
	all := func() []*protocol.Status {
		return []*protocol.Status{campaigned(21, "Resting"), campaigned(22, "LeaderLost"), campaigned(35, "Resting")}
	}
	for name, c := range map[string]struct {
		kind    string
		answers func(look int) []*protocol.Status
	}{
		"one answers seldom, and another not always": {v1.ConditionAvailable, func(n int) []*protocol.Status {
			return without(without(all(), 2, n%3 > 0), 0, n%7 == 6)
		}},
		"they take turns": {v1.ConditionAvailable, func(n int) []*protocol.Status {
			return without(all(), (n*7+n/5)%3, true)
		}},
		"the only candidate does not always answer": {v1.ConditionAvailable, func(n int) []*protocol.Status {
			return without([]*protocol.Status{
				campaigned(21, "Resting"), campaigned(0, ha.RefusedNoMajority), campaigned(0, ha.RefusedNoMajority),
			}, 0, n%3 == 2)
		}},
		"one is elected now and then, and lost before it takes writes": {
			v1.ConditionAvailable, func(n int) []*protocol.Status {
				answers := all()
				if n%5 == 4 {
					answers[0].Role, answers[0].Reason = protocol.RolePrimary, "Leader"
				}
				return answers
			},
		},
		"one busy machine beside agents of an earlier release": {v1.ConditionOnTime, func(n int) []*protocol.Status {
			return without([]*protocol.Status{{}, {}, slack(8 * time.Second)}, 2, n%3 == 2)
		}},
	} {
		if times := flickers(c.kind, c.answers); times > 2 {
			t.Errorf("%s: in five minutes %s changes %d times", name, c.kind, times)
		}
	}
}

func TestWhatIsSaidOfAnInstanceWhileElectionsAreInVain(t *testing.T) {
	vain := no(v1.ReasonElectionsInVain, "")
	for name, c := range map[string]struct {
		vain            verdict
		answer          *protocol.Status
		reason, message string
	}{
		"it campaigns": {vain, campaigned(9, "LeaderLost"), vain.reason, "has seen at least 8 elections in vain"},
		"it rests":     {vain, campaigned(9, "Resting"), vain.reason, "has seen at least 8 elections in vain"},
		"it has none of it": {
			vain, campaigned(0, ha.RefusedNoMajority), vain.reason, "waits for an instance to be elected",
		},
		"it can't be elected":    {vain, campaigned(9, ha.RefusedEndUnknown), ha.RefusedEndUnknown, "as it is"},
		"its data is copied":     {vain, campaigned(0, "NoData"), "NoData", "as it is"},
		"elections are not so":   {verdict{}, campaigned(9, "LeaderLost"), "LeaderLost", "as it is"},
		"they are only slow":     {verdict{}, campaigned(1, "Resting"), "Resting", "as it is"},
		"it has lost its quorum": {verdict{}, campaigned(0, ha.RefusedNoMajority), ha.RefusedNoMajority, "as it is"},
	} {
		s := scopeOf(core{outcomes: outcomes{vain: c.vain}})
		if reason, message := s.said(*c.answer); reason != c.reason || message != c.message {
			t.Errorf("%s: it says %s: %s", name, reason, message)
		}
	}
}

func TestCampaignsAreCountedRoughly(t *testing.T) {
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 3: 2, 4: 4, 7: 4, 8: 8, 1000: 512} {
		if got := roughly(n); got != want {
			t.Errorf("%d is roughly %d", n, got)
		}
	}
}

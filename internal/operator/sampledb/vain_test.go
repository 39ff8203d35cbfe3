package sampledb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

func TestWhetherElectionsAreInVain(t *testing.T) {
	lost := func(ago time.Duration, answers ...*protocol.Status) *scope {
		return scopeOn(worldtest.Was(worldtest.ThreeOf(answers...), v1.ConditionAvailable, "False",
			v1.ReasonNoPrimary, ago))
	}
	storm := func() *scope {
		return lost(time.Minute, worldtest.Campaigned(21, "Resting"), worldtest.Campaigned(3, "LeaderLost"),
			worldtest.Campaigned(0, "Resting"))
	}
	leads := worldtest.Campaigned(21, "Leader")
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
		"they are, since a moment": {lost(5*time.Second, worldtest.Campaigned(21, "Resting")), ""},
		"an election is slow": {lost(time.Minute, worldtest.Campaigned(3, "Resting"), worldtest.Campaigned(3,
			"Resting")), ""},
		"one is elected":   {lost(time.Minute, worldtest.Campaigned(21, "Resting"), leads), ""},
		"one is not heard": {lost(time.Minute, worldtest.Campaigned(21, "Resting"), nil), ""},
		"nothing is known of who led": {
			scopeOn(worldtest.ThreeOf(worldtest.Campaigned(21, "Resting"), worldtest.Campaigned(21, "Resting"))), "",
		},
		"the machine is busy": {
			changed(func(s *scope) { s.Machines = world.No(v1.ReasonMachineBusy, "the machine of x-2 is busy") }),
			"longer after each time; the machine of x-2 is busy",
		},
		"it is stopped": {changed(func(s *scope) { s.Stop = &v1.StopStatus{Step: v1.StopStopped} }), ""},
		"it is deleted": {changed(func(s *scope) { s.DB.DeletionTimestamp = &metav1.Time{Time: s.Now} }), ""},
		"too many have lost their data": {
			changed(func(s *scope) { s.Loss.Reason = world.LossMajority }), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.s.ElectionsInVain()
			if (v.Reason == v1.ReasonElectionsInVain) != (c.says != "") || !strings.Contains(v.Message, c.says) {
				t.Fatalf("it says %+v", v)
			}
			c.s.Vain = v
			if got := available(c.s); (got == v) != (c.says != "") {
				t.Errorf("Available is %+v", got)
			}
		})
	}
}

// Commits that clients have cancelled are told by an event, once, and those before the operator looked by none.
func TestCommitsThatAreCancelledAreTold(t *testing.T) {
	var remembered world.Memory
	told := func(count int64) (n int) {
		s := scopeOn(worldtest.ThreeOf(&protocol.Status{Election: protocol.Election{CancelledCommits: count}}))
		s.Memory = &remembered
		s.TellCancelledCommits()
		for _, e := range s.QueuedEvents {
			if e.Reason == world.EventCommitsCancelled && e.Kind == corev1.EventTypeWarning {
				n++
			}
		}
		return n
	}
	if before, more, same := told(2), told(3), told(3); before != 0 || more != 1 || same != 0 {
		t.Errorf("%d events of what was before, %d of one more, %d of no more", before, more, same)
	}
}

// flickers is how often a condition is another one, in its reason or its words, in 75 looks four seconds apart.
func flickers(kind string, answers func(look int) []*protocol.Status) (times int) {
	var remembered world.Memory
	begin := time.Unix(1e9, 0)
	conditions := worldtest.Was(worldtest.ThreeOf(), v1.ConditionAvailable, "False", v1.ReasonNoPrimary,
		time.Minute).DB.Status.Conditions
	last := world.Verdict{}
	for n := range 75 {
		s := scopeOn(worldtest.ThreeOf(answers(n)...))
		s.Now, s.DB.Status.Conditions, s.Memory = begin.Add(time.Duration(n)*4*time.Second), conditions, &remembered
		s.PaceMachines()
		v := available(s)
		if kind == v1.ConditionOnTime {
			v = s.Machines
		}
		if v.Reason == "" {
			meta.RemoveStatusCondition(&conditions, kind)
		} else {
			meta.SetStatusCondition(&conditions, metav1.Condition{
				Type: kind, Status: v.Status, Reason: v.Reason, Message: v.Message,
				LastTransitionTime: metav1.NewTime(s.Now),
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
		return []*protocol.Status{worldtest.Campaigned(21, "Resting"), worldtest.Campaigned(22, "LeaderLost"),
			worldtest.Campaigned(35, "Resting")}
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
				worldtest.Campaigned(21, "Resting"), worldtest.Campaigned(0, ha.RefusedNoMajority),
				worldtest.Campaigned(0, ha.RefusedNoMajority),
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
			return without([]*protocol.Status{{}, {}, worldtest.Slack(8 * time.Second)}, 2, n%3 == 2)
		}},
	} {
		if times := flickers(c.kind, c.answers); times > 2 {
			t.Errorf("%s: in five minutes %s changes %d times", name, c.kind, times)
		}
	}
}

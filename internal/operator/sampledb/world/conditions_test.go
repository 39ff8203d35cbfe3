package world

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

func TestTheLeaderIsTheOneOfTheLatestTerm(t *testing.T) {
	claims := func(name string, term uint64, ready bool) protocol.Status {
		return protocol.Status{Name: name, Role: protocol.RolePrimary, Ready: ready, Term: term}
	}
	resigned := claims("x-1", 3, true)
	resigned.Resigned = true
	standby := protocol.Status{Name: "x-2", Role: protocol.RoleStandby, Ready: true, Term: 9}
	for name, c := range map[string]struct {
		answers         []protocol.Status
		leader, primary string
	}{
		"nobody answers":                    {nil, "", ""},
		"one":                               {[]protocol.Status{claims("x-0", 1, true), standby}, "x-0", "x-0"},
		"one that does not take writes yet": {[]protocol.Status{claims("x-0", 1, false)}, "x-0", ""},
		"two, of which one has not heard of it": {
			[]protocol.Status{claims("x-0", 1, true), claims("x-1", 2, true)}, "x-1", "x-1",
		},
		"two, the later of which takes none yet": {
			[]protocol.Status{claims("x-0", 1, true), claims("x-1", 2, false)}, "x-1", "",
		},
		"the later one by number, whatever its name": {
			[]protocol.Status{claims("x-0", 10, true), claims("x-1", 9, true)}, "x-0", "x-0",
		},
		"one that has resigned": {[]protocol.Status{resigned, standby}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := actOf(Core{Seen: Observed{Answers: map[string]protocol.Status{}}})
			for _, a := range c.answers {
				s.Seen.Answers[a.Name] = a
			}
			if s.Leader() != c.leader || s.Primary() != c.primary {
				t.Errorf("leader %q, primary %q, want %q, %q", s.Leader(), s.Primary(), c.leader, c.primary)
			}
		})
	}
}

func TestDurableSaysWhatLosingOneInstanceWouldLose(t *testing.T) {
	for name, c := range map[string]struct {
		instances        int
		durability       v1.Durability
		primary          string
		acknowledgements int
		status           metav1.ConditionStatus
		reason           string
	}{
		"one instance": {1, v1.DurabilityQuorum, "x-0", 1, metav1.ConditionFalse, v1.ReasonSingleInstance},
		"one instance that can't be asked": {
			1, v1.DurabilityQuorum, "", 0, metav1.ConditionFalse, v1.ReasonSingleInstance,
		},
		"two":                             {2, v1.DurabilityQuorum, "x-0", 2, metav1.ConditionTrue, v1.ReasonDurable},
		"two, of which one goes on alone": {2, v1.DurabilityQuorum, "x-0", 1, metav1.ConditionFalse, v1.ReasonWeakened},
		"five":                            {5, "", "x-0", 3, metav1.ConditionTrue, v1.ReasonDurable},
		"three that wait for nobody": {
			3, v1.DurabilityAsync, "x-0", 1, metav1.ConditionFalse, v1.ReasonAsynchronous,
		},
		"three that can't be asked": {3, v1.DurabilityQuorum, "", 0, metav1.ConditionUnknown, v1.ReasonUnknown},
		"three whose primary does not say it": {
			3, v1.DurabilityQuorum, "x-0", 0, metav1.ConditionUnknown, v1.ReasonUnknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1.SampleDB{}
			db.Spec.Durability = c.durability
			s := actOf(Core{DB: db, Config: protocol.Config{Members: make([]protocol.Member, c.instances)}})
			if c.primary != "" {
				s.Seen.Answers = map[string]protocol.Status{
					c.primary: {
						Name: c.primary, Role: protocol.RolePrimary, Ready: true, Acknowledgements: c.acknowledgements,
					},
				}
			}
			if v := s.Durable(); v.Status != c.status || v.Reason != c.reason || v.Message == "" {
				t.Errorf("%+v, want %s for %s", v, c.status, c.reason)
			}
		})
	}
}

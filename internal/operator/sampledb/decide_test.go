package sampledb

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

func TestDecideRestartsOneAtATimeStandbysFirst(t *testing.T) {
	changed, parameter := []string{"image"}, []string{"max_connections"}
	// A fleet of a primary (0) and two standbys, all ready, changed by the case.
	with := func(modify ...func(f *fleet)) fleet {
		f := fleet{observed: true, instances: []instance{
			{name: "x-0", exists: true, known: true, running: true, ready: true, primary: true},
			{name: "x-1", exists: true, known: true, running: true, ready: true},
			{name: "x-2", exists: true, known: true, running: true, ready: true},
		}}
		for _, m := range modify {
			m(&f)
		}
		return f
	}
	each := func(which []int, change func(*instance)) func(*fleet) {
		return func(f *fleet) {
			for _, i := range which {
				change(&f.instances[i])
			}
		}
	}
	outdated := func(which ...int) func(*fleet) {
		return each(which, func(i *instance) { i.outdated = changed })
	}
	pending := func(which ...int) func(*fleet) {
		return each(which, func(i *instance) { i.pending = parameter })
	}
	asked := func(which ...int) func(*fleet) { return each(which, func(i *instance) { i.asked = true }) }
	resizes := func(which ...int) func(*fleet) {
		return each(which, func(i *instance) { i.outdated, i.resizes = []string{"resources"}, true })
	}
	resizing := func(i int) func(*fleet) { return func(f *fleet) { f.instances[i].resizing = "its node is busy" } }
	down := func(i int) func(*fleet) {
		return func(f *fleet) {
			f.instances[i].ready, f.instances[i].running, f.instances[i].known = false, false, false
		}
	}
	// another lets x-1 lead instead of x-0.
	another := func(f *fleet) { f.instances[0].primary, f.instances[1].primary = false, true }
	unready := func(i int) func(*fleet) { return func(f *fleet) { f.instances[i].ready = false } }
	joining := func(f *fleet) { f.instances[2].joining = true }
	moving := func(f *fleet) { f.moving = "x-0 is asked to hand over" }
	unasked := func(i int) func(*fleet) {
		return func(f *fleet) { f.instances[i].ready, f.instances[i].known = false, false }
	}
	for name, c := range map[string]struct {
		fleet  fleet
		action action
		target string
		reason string
	}{
		"nothing has changed":                         {with(), actionNone, "", reasonCurrent},
		"an instance is down and nothing has changed": {with(down(1)), actionNone, "", reasonCurrent},
		"all are outdated: a standby first":           {with(outdated(0, 1, 2)), actionReplace, "x-2", reasonOutdated},
		"other resources: a standby first":            {with(resizes(0, 1, 2)), actionResize, "x-2", reasonOutdated},
		"other resources: the primary last":           {with(resizes(0)), actionResize, "x-0", reasonOutdated},
		"a node has not given them yet": {
			with(resizes(0, 1), resizing(2)), actionWait, "x-2", reasonResizing,
		},
		"they are given, and a restart waits": {
			with(pending(2), resizing(2)), actionWait, "x-2", reasonResizing,
		},
		"other resources for a broken one": {with(resizes(1), down(1)), actionReplace, "x-1", reasonBroken},
		"other resources, while another is down": {
			with(resizes(1), down(2)), actionWait, "x-1", reasonOthersUnready,
		},
		"the next standby": {with(outdated(0, 1)), actionReplace, "x-1", reasonOutdated},
		"the primary last": {with(outdated(0)), actionReplace, "x-0", reasonOutdated},
		"the former one is not back yet": {
			with(outdated(0, 1), down(2)), actionWait, "x-1", reasonOthersUnready,
		},
		"one could not be asked: not known is not ready": {
			with(outdated(0, 1), unasked(2)), actionWait, "x-1", reasonUnknown,
		},
		"the primary could not be asked":  {with(outdated(1), unasked(0)), actionWait, "x-1", reasonUnknown},
		"the target itself may be silent": {with(outdated(1), unasked(1)), actionReplace, "x-1", reasonOutdated},
		"a broken one is replaced at once, whoever else is down": {
			with(outdated(0, 1), down(1), down(2)), actionReplace, "x-1", reasonBroken,
		},
		"a broken one that is not outdated is left to its agent": {
			with(outdated(0), down(1)), actionWait, "x-0", reasonOthersUnready,
		},
		"the StatefulSet has not seen the template": {
			with(outdated(0, 1, 2), func(f *fleet) { f.observed = false }), actionWait, "", reasonNotObserved,
		},
		"a restart is asked for everywhere: a standby first": {
			with(asked(0, 1, 2)), actionRestart, "x-2", reasonAsked,
		},
		"a restart is asked for, and the primary is left": {with(asked(0)), actionRestart, "x-0", reasonAsked},
		"a restart is asked for while another is down": {
			with(asked(0), down(2)), actionWait, "x-0", reasonOthersUnready,
		},
		"a server that was asked to restart is not back yet": {
			with(asked(1), unready(1)), actionWait, "x-1", reasonRestarting,
		},
		"a restart is asked for of one whose Pod is outdated": {
			with(asked(2), outdated(2)), actionReplace, "x-2", reasonOutdated,
		},
		"a parameter waits everywhere: a standby first": {with(pending(0, 1, 2)), actionRestart, "x-2", reasonPending},
		"a parameter waits on the primary alone":        {with(pending(0)), actionRestart, "x-0", reasonPending},
		"a parameter waits while another one is down": {
			with(pending(0), down(2)), actionWait, "x-0", reasonOthersUnready,
		},
		"both: the Pod, since a new Pod has a new server": {
			with(pending(2), outdated(2)), actionReplace, "x-2", reasonOutdated,
		},
		"another leads in the middle: the former is a standby now": {
			with(another, outdated(0, 1)), actionReplace, "x-0", reasonOutdated,
		},
		"another leads in the middle, and all else is done": {
			with(another, outdated(1)), actionReplace, "x-1", reasonOutdated,
		},
		"another leads with a new server: nothing is left": {with(another), actionNone, "", reasonCurrent},
		"another leads with an old server: it is the last": {
			with(another, pending(0, 1)), actionRestart, "x-0", reasonPending,
		},
		"the former has not been back yet with its new server": {
			with(another, pending(0), unready(0)), actionWait, "x-0", reasonRestarting,
		},
		"the primary hands over for its restart": {with(pending(0), unready(0)), actionWait, "x-0", reasonRestarting},
		"a standby is being restarted already": {
			with(pending(0, 2), unready(2)), actionWait, "x-2", reasonRestarting,
		},
		"nobody leads: the former primary may be anybody": {
			with(unready(0), pending(0), func(f *fleet) { f.instances[0].primary = false }), actionWait,
			"x-0", reasonRestarting,
		},
		"the former one is back and does not count yet": {
			with(outdated(0, 1), joining), actionWait, "x-1", reasonOthersJoining,
		},
		"the only standby does not count yet: nobody can take over": {
			with(pending(0), joining), actionWait, "x-0", reasonOthersJoining,
		},
		"the target itself does not have to count": {with(outdated(2), joining), actionReplace, "x-2", reasonOutdated},
		"another is about to lead":                 {with(outdated(0, 1, 2), moving), actionWait, "", reasonMoving},
		"another is about to lead, and one is broken": {
			with(outdated(1), down(1), moving), actionReplace, "x-1", reasonBroken,
		},
		"another is about to lead, and nothing has changed": {with(moving), actionNone, "", reasonCurrent},
		"a Pod that is ending already is not broken but under way": {
			with(outdated(1), down(1), func(f *fleet) { f.instances[1].exists = false }),
			actionWait, "x-1", reasonEnding,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.fleet.instances)
			d := decide(c.fleet)
			if d.action != c.action || d.target != c.target || d.reason != c.reason {
				t.Errorf("decided %s %q for %s (%s), want %s %q for %s",
					d.action, d.target, d.reason, d.message, c.action, c.target, c.reason)
			}
			for i := range before {
				if before[i].name != c.fleet.instances[i].name {
					t.Error("the decision has changed the fleet")
				}
			}
		})
	}
}

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
			s := scopeOf(core{seen: observed{answers: map[string]protocol.Status{}}})
			for _, a := range c.answers {
				s.seen.answers[a.Name] = a
			}
			if s.leader() != c.leader || s.primary() != c.primary {
				t.Errorf("leader %q, primary %q, want %q, %q", s.leader(), s.primary(), c.leader, c.primary)
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
			s := scopeOf(core{db: db, config: protocol.Config{Members: make([]protocol.Member, c.instances)}})
			if c.primary != "" {
				s.seen.answers = map[string]protocol.Status{
					c.primary: {
						Name: c.primary, Role: protocol.RolePrimary, Ready: true, Acknowledgements: c.acknowledgements,
					},
				}
			}
			if v := s.durable(); v.status != c.status || v.reason != c.reason || v.message == "" {
				t.Errorf("%+v, want %s for %s", v, c.status, c.reason)
			}
		})
	}
}

package fleet

import (
	"slices"
	"testing"

	"toban.dev/internal/operator/sampledb/world"
)

func TestDecideRestartsOneAtATimeStandbysFirst(t *testing.T) {
	changed, parameter := []string{"image"}, []string{"max_connections"}
	// A fleet of a primary (0) and two standbys, all ready, changed by the case.
	with := func(modify ...func(f *world.Fleet)) world.Fleet {
		f := world.Fleet{Observed: true, Instances: []world.Instance{
			{Name: "x-0", Exists: true, Known: true, Running: true, Ready: true, Primary: true},
			{Name: "x-1", Exists: true, Known: true, Running: true, Ready: true},
			{Name: "x-2", Exists: true, Known: true, Running: true, Ready: true},
		}}
		for _, m := range modify {
			m(&f)
		}
		return f
	}
	each := func(which []int, change func(*world.Instance)) func(*world.Fleet) {
		return func(f *world.Fleet) {
			for _, i := range which {
				change(&f.Instances[i])
			}
		}
	}
	outdated := func(which ...int) func(*world.Fleet) {
		return each(which, func(i *world.Instance) { i.Outdated = changed })
	}
	pending := func(which ...int) func(*world.Fleet) {
		return each(which, func(i *world.Instance) { i.Pending = parameter })
	}
	asked := func(which ...int) func(*world.Fleet) { return each(which, func(i *world.Instance) { i.Asked = true }) }
	resizes := func(which ...int) func(*world.Fleet) {
		return each(which, func(i *world.Instance) { i.Outdated, i.Resizes = []string{"resources"}, true })
	}
	resizing := func(i int) func(*world.Fleet) {
		return func(f *world.Fleet) { f.Instances[i].Resizing = "its node is busy" }
	}
	down := func(i int) func(*world.Fleet) {
		return func(f *world.Fleet) {
			f.Instances[i].Ready, f.Instances[i].Running, f.Instances[i].Known = false, false, false
		}
	}
	// another lets x-1 lead instead of x-0.
	another := func(f *world.Fleet) { f.Instances[0].Primary, f.Instances[1].Primary = false, true }
	unready := func(i int) func(*world.Fleet) { return func(f *world.Fleet) { f.Instances[i].Ready = false } }
	joining := func(f *world.Fleet) { f.Instances[2].Joining = true }
	moving := func(f *world.Fleet) { f.Moving = "x-0 is asked to hand over" }
	unasked := func(i int) func(*world.Fleet) {
		return func(f *world.Fleet) { f.Instances[i].Ready, f.Instances[i].Known = false, false }
	}
	for name, c := range map[string]struct {
		fleet  world.Fleet
		action world.Action
		target string
		reason string
	}{
		"nothing has changed":                         {with(), world.ActionNone, "", reasonCurrent},
		"an instance is down and nothing has changed": {with(down(1)), world.ActionNone, "", reasonCurrent},
		"all are outdated: a standby first": {with(outdated(0, 1, 2)), world.ActionReplace, "x-2",
			reasonOutdated},
		"other resources: a standby first": {with(resizes(0, 1, 2)), world.ActionResize, "x-2",
			reasonOutdated},
		"other resources: the primary last": {with(resizes(0)), world.ActionResize, "x-0", reasonOutdated},
		"a node has not given them yet": {
			with(resizes(0, 1), resizing(2)), world.ActionWait, "x-2", reasonResizing,
		},
		"they are given, and a restart waits": {
			with(pending(2), resizing(2)), world.ActionWait, "x-2", reasonResizing,
		},
		"other resources for a broken one": {with(resizes(1), down(1)), world.ActionReplace, "x-1", reasonBroken},
		"other resources, while another is down": {
			with(resizes(1), down(2)), world.ActionWait, "x-1", reasonOthersUnready,
		},
		"the next standby": {with(outdated(0, 1)), world.ActionReplace, "x-1", reasonOutdated},
		"the primary last": {with(outdated(0)), world.ActionReplace, "x-0", reasonOutdated},
		"the former one is not back yet": {
			with(outdated(0, 1), down(2)), world.ActionWait, "x-1", reasonOthersUnready,
		},
		"one could not be asked: not known is not ready": {
			with(outdated(0, 1), unasked(2)), world.ActionWait, "x-1", reasonUnknown,
		},
		"the primary could not be asked":  {with(outdated(1), unasked(0)), world.ActionWait, "x-1", reasonUnknown},
		"the target itself may be silent": {with(outdated(1), unasked(1)), world.ActionReplace, "x-1", reasonOutdated},
		"a broken one is replaced at once, whoever else is down": {
			with(outdated(0, 1), down(1), down(2)), world.ActionReplace, "x-1", reasonBroken,
		},
		"a broken one that is not outdated is left to its agent": {
			with(outdated(0), down(1)), world.ActionWait, "x-0", reasonOthersUnready,
		},
		"the StatefulSet has not seen the template": {
			with(outdated(0, 1, 2), func(f *world.Fleet) { f.Observed = false }), world.ActionWait, "",
			reasonNotObserved,
		},
		"a restart is asked for everywhere: a standby first": {
			with(asked(0, 1, 2)), world.ActionRestart, "x-2", reasonAsked,
		},
		"a restart is asked for, and the primary is left": {with(asked(0)), world.ActionRestart, "x-0", reasonAsked},
		"a restart is asked for while another is down": {
			with(asked(0), down(2)), world.ActionWait, "x-0", reasonOthersUnready,
		},
		"a server that was asked to restart is not back yet": {
			with(asked(1), unready(1)), world.ActionWait, "x-1", reasonRestarting,
		},
		"a restart is asked for of one whose Pod is outdated": {
			with(asked(2), outdated(2)), world.ActionReplace, "x-2", reasonOutdated,
		},
		"a parameter waits everywhere: a standby first": {with(pending(0, 1, 2)), world.ActionRestart, "x-2",
			reasonPending},
		"a parameter waits on the primary alone": {with(pending(0)), world.ActionRestart, "x-0", reasonPending},
		"a parameter waits while another one is down": {
			with(pending(0), down(2)), world.ActionWait, "x-0", reasonOthersUnready,
		},
		"both: the Pod, since a new Pod has a new server": {
			with(pending(2), outdated(2)), world.ActionReplace, "x-2", reasonOutdated,
		},
		"another leads in the middle: the former is a standby now": {
			with(another, outdated(0, 1)), world.ActionReplace, "x-0", reasonOutdated,
		},
		"another leads in the middle, and all else is done": {
			with(another, outdated(1)), world.ActionReplace, "x-1", reasonOutdated,
		},
		"another leads with a new server: nothing is left": {with(another), world.ActionNone, "", reasonCurrent},
		"another leads with an old server: it is the last": {
			with(another, pending(0, 1)), world.ActionRestart, "x-0", reasonPending,
		},
		"the former has not been back yet with its new server": {
			with(another, pending(0), unready(0)), world.ActionWait, "x-0", reasonRestarting,
		},
		"the primary hands over for its restart": {with(pending(0), unready(0)), world.ActionWait, "x-0",
			reasonRestarting},
		"a standby is being restarted already": {
			with(pending(0, 2), unready(2)), world.ActionWait, "x-2", reasonRestarting,
		},
		"nobody leads: the former primary may be anybody": {
			with(unready(0), pending(0), func(f *world.Fleet) { f.Instances[0].Primary = false }), world.ActionWait,
			"x-0", reasonRestarting,
		},
		"the former one is back and does not count yet": {
			with(outdated(0, 1), joining), world.ActionWait, "x-1", reasonOthersJoining,
		},
		"the only standby does not count yet: nobody can take over": {
			with(pending(0), joining), world.ActionWait, "x-0", reasonOthersJoining,
		},
		"the target itself does not have to count": {with(outdated(2), joining), world.ActionReplace, "x-2",
			reasonOutdated},
		"another is about to lead": {with(outdated(0, 1, 2), moving), world.ActionWait, "",
			reasonMoving},
		"another is about to lead, and one is broken": {
			with(outdated(1), down(1), moving), world.ActionReplace, "x-1", reasonBroken,
		},
		"another is about to lead, and nothing has changed": {with(moving), world.ActionNone, "", reasonCurrent},
		"a Pod that is ending already is not broken but under way": {
			with(outdated(1), down(1), func(f *world.Fleet) { f.Instances[1].Exists = false }),
			world.ActionWait, "x-1", reasonEnding,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.fleet.Instances)
			d := decide(c.fleet)
			if d.Action != c.action || d.Target != c.target || d.Reason != c.reason {
				t.Errorf("decided %s %q for %s (%s), want %s %q for %s",
					d.Action, d.Target, d.Reason, d.Message, c.action, c.target, c.reason)
			}
			for i := range before {
				if before[i].Name != c.fleet.Instances[i].Name {
					t.Error("the decision has changed the fleet")
				}
			}
		})
	}
}

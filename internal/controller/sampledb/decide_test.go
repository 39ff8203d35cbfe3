package sampledb

import (
	"slices"
	"testing"
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
	outdated := func(which ...int) func(*fleet) {
		return func(f *fleet) {
			for _, i := range which {
				f.instances[i].outdated = changed
			}
		}
	}
	pending := func(which ...int) func(*fleet) {
		return func(f *fleet) {
			for _, i := range which {
				f.instances[i].pending = parameter
			}
		}
	}
	down := func(i int) func(*fleet) {
		return func(f *fleet) {
			f.instances[i].ready, f.instances[i].running, f.instances[i].known = false, false, false
		}
	}
	unasked := func(i int) func(*fleet) {
		return func(f *fleet) { f.instances[i].ready, f.instances[i].known = false, false }
	}
	for name, c := range map[string]struct {
		fleet  fleet
		action action
		target string
		reason string
	}{
		"nothing has changed":                                      {with(), actionNone, "", reasonCurrent},
		"an instance is down and nothing has changed":              {with(down(1)), actionNone, "", reasonCurrent},
		"all are outdated: a standby first":                        {with(outdated(0, 1, 2)), actionReplace, "x-2", reasonOutdated},
		"the next standby":                                         {with(outdated(0, 1)), actionReplace, "x-1", reasonOutdated},
		"the primary last":                                         {with(outdated(0)), actionReplace, "x-0", reasonOutdated},
		"the former one is not back yet":                           {with(outdated(0, 1), down(2)), actionWait, "x-1", reasonOthersUnready},
		"one could not be asked: not known is not ready":           {with(outdated(0, 1), unasked(2)), actionWait, "x-1", reasonUnknown},
		"the primary could not be asked":                           {with(outdated(1), unasked(0)), actionWait, "x-1", reasonUnknown},
		"the target itself may be silent":                          {with(outdated(1), unasked(1)), actionReplace, "x-1", reasonOutdated},
		"a broken one is replaced at once, whoever else is down":   {with(outdated(0, 1), down(1), down(2)), actionReplace, "x-1", reasonBroken},
		"a broken one that is not outdated is left to its agent":   {with(outdated(0), down(1)), actionWait, "x-0", reasonOthersUnready},
		"the StatefulSet has not seen the template":                {with(outdated(0, 1, 2), func(f *fleet) { f.observed = false }), actionWait, "", reasonNotObserved},
		"a parameter waits everywhere: a standby first":            {with(pending(0, 1, 2)), actionRestart, "x-2", reasonPending},
		"a parameter waits on the primary alone":                   {with(pending(0)), actionRestart, "x-0", reasonPending},
		"a parameter waits while another one is down":              {with(pending(0), down(2)), actionWait, "x-0", reasonOthersUnready},
		"both: the Pod, since a new Pod has a new server":          {with(pending(2), outdated(2)), actionReplace, "x-2", reasonOutdated},
		"a Pod that is ending already is not broken but under way": {with(outdated(1), down(1), func(f *fleet) { f.instances[1].exists = false }), actionWait, "x-1", reasonEnding},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(c.fleet.instances)
			d := decide(c.fleet)
			if d.action != c.action || d.target != c.target || d.reason != c.reason {
				t.Errorf("decided %s %q for %s (%s), want %s %q for %s", d.action, d.target, d.reason, d.message, c.action, c.target, c.reason)
			}
			for i := range before {
				if before[i].name != c.fleet.instances[i].name {
					t.Error("the decision has changed the fleet")
				}
			}
		})
	}
}

func TestContainsAsksOnlyForWhatIsWanted(t *testing.T) {
	type m = map[string]any
	for name, c := range map[string]struct {
		have, want any
		contains   bool
	}{
		"a default that the server has set": {m{"a": "x", "default": int64(1)}, m{"a": "x"}, true},
		"a changed value":                   {m{"a": "y"}, m{"a": "x"}, false},
		"a missing value":                   {m{}, m{"a": "x"}, false},
		"an added item":                     {m{"l": []any{"x", "y"}}, m{"l": []any{"x"}}, false},
		"a default inside an item":          {m{"l": []any{m{"p": int64(1), "d": true}}}, m{"l": []any{m{"p": int64(1)}}}, true},
		"an empty map where there is none":  {m{}, m{"a": m{}}, true},
		"an empty list where there is none": {m{}, m{"a": []any{}}, true},
		"another owner besides ours":        {m{"ownerReferences": []any{m{"uid": "o"}, m{"uid": "u"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, true},
		"our owner is gone":                 {m{"ownerReferences": []any{m{"uid": "o"}}}, m{"ownerReferences": []any{m{"uid": "u"}}}, false},
		"a text where a map is wanted":      {m{"a": "x"}, m{"a": m{"b": "c"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := contains(c.have, c.want); got != c.contains {
				t.Errorf("contains = %v, want %v", got, c.contains)
			}
		})
	}
}

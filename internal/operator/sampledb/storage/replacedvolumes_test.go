package storage

import (
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/change/space"
	"toban.dev/internal/operator/desired/volumes"
)

// threeDue are three instances, of which the second one leads and all volumes are to be smaller.
func threeDue(edit ...func(*replacingView)) replacingView {
	v := replacingView{
		primary: "x-1", votersKnown: true, template: true,
		fit: space.Fit{Answer: space.Fits, Message: "the data fits"},
	}
	for _, name := range []string{"x-0", "x-1", "x-2"} {
		v.instances = append(v.instances, replacingInstance{
			name: name, due: []string{volumes.AnewSize}, bound: true, exists: true, ready: true, counts: true,
		})
	}
	for _, e := range edit {
		e(&v)
	}
	return v
}

// replacedAlready says that some volumes are as wanted.
func replacedAlready(ordinals ...int) func(*replacingView) {
	return func(v *replacingView) {
		for _, n := range ordinals {
			v.instances[n].due = nil
		}
	}
}

func TestDecideAnew(t *testing.T) {
	of := func(n int, edit func(*replacingInstance)) func(*replacingView) {
		return func(v *replacingView) { edit(&v.instances[n]) }
	}
	for name, c := range map[string]struct {
		view                 replacingView
		reason, target, says string
	}{
		"nothing is to be made anew":   {threeDue(replacedAlready(0, 1, 2)), replacingCurrent, "", ""},
		"the highest standby is first": {threeDue(), replacingReplaced, "x-2", "x-2 is copied"},
		"then the other standby":       {threeDue(replacedAlready(2)), replacingReplaced, "x-0", "x-0 is copied"},
		"then the primary hands over":  {threeDue(replacedAlready(0, 2)), replacingHandOver, "x-1", "x-1 hands over"},
		"which is a standby then": {
			threeDue(replacedAlready(0, 2), func(v *replacingView) { v.primary = "x-0" }),
			replacingReplaced, "x-1", "x-1 is copied",
		},
		"two instances": {
			threeDue(func(v *replacingView) { v.instances = v.instances[:2] }), replacingReplaced, "x-0",
			"x-0 is copied",
		},
		"a lone instance": {
			threeDue(func(v *replacingView) { v.instances = v.instances[1:2] }), replacingAlone, "x-1",
			"spec.instances to 2",
		},
		"one of them has what a restore has replaced": {
			threeDue(of(0, func(i *replacingInstance) {
				i.aside = volumes.Aside{What: "the former",
					Until: "Delete"}
			})),
			replacingSetAside, "x-2", "that of x-0 has the former",
		},
		"so has the primary, and its turn is last": {
			threeDue(replacedAlready(0, 2),
				of(1, func(i *replacingInstance) { i.aside = volumes.Aside{What: "the former", Until: "Delete"} })),
			replacingSetAside, "x-1", "that of x-1 has the former",
		},
		"one that has it stays": {
			threeDue(replacedAlready(0), of(0,
				func(i *replacingInstance) { i.aside = volumes.Aside{What: "the former"} })),
			replacingReplaced, "x-2", "x-2 is copied",
		},
		"somebody has deleted the claim that had it": {
			threeDue(of(0, func(i *replacingInstance) { i.going, i.aside = true, volumes.Aside{What: "the former"} })),
			replacingReplaced, "x-0", "x-0 is copied",
		},
		"the class does not exist": {
			threeDue(func(v *replacingView) { v.missing = "StorageClass fast does not exist" }), replacingNoClass,
			"x-2", "fast",
		},
		"the data does not fit": {
			threeDue(func(v *replacingView) { v.fit = space.Fit{Answer: space.DoesNotFit, Message: "9Gi"} }),
			replacingDoesNotFit, "x-2", "9Gi",
		},
		"it does not fit any more, after the first one": {
			threeDue(replacedAlready(2),
				func(v *replacingView) { v.fit = space.Fit{Answer: space.DoesNotFit, Message: "9Gi"} }),
			replacingDoesNotFit, "x-0", "9Gi",
		},
		"whether it fits is not known": {
			threeDue(func(v *replacingView) { v.fit = space.Fit{Answer: space.NotKnown, Message: "x-0"} }),
			replacingNotKnown, "x-2", "not known",
		},
		"nobody takes writes": {threeDue(func(v *replacingView) { v.primary = "" }), replacingNoPrimary, "x-2",
			"no instance"},
		"who counts is not known": {
			threeDue(func(v *replacingView) { v.votersKnown = false }), replacingUnknown, "x-2", "does not say",
		},
		"a restart is under way": {
			threeDue(func(v *replacingView) { v.busy = "a restart" }), replacingBusy, "x-2", "waits for a restart",
		},
		"another one is not ready": {
			threeDue(of(0, func(i *replacingInstance) { i.ready = false })), replacingOthers, "x-2",
			"when x-0 is ready",
		},
		"the primary is not ready": {
			threeDue(of(1, func(i *replacingInstance) { i.ready = false })), replacingOthers, "x-2",
			"when x-1 is ready",
		},
		"the one before is copied": {
			threeDue(replacedAlready(2), of(2, func(i *replacingInstance) { i.ready, i.counts = false, false })),
			replacingCopying, "x-0", "when x-2 is ready",
		},
		"the one before does not count yet": {
			threeDue(replacedAlready(2), of(2, func(i *replacingInstance) { i.counts = false })),
			replacingCopying, "x-0", "when x-2 counts",
		},
		"the one before has no volume yet": {
			threeDue(replacedAlready(2), of(2, func(i *replacingInstance) { i.bound = false })),
			replacingCopying, "x-0", "when the volume data-x-2 is there again",
		},
		"somebody has deleted the claim of another one": {
			threeDue(replacedAlready(0), of(0, func(i *replacingInstance) { i.going = true })),
			replacingCopying, "x-2", "when the volume data-x-0 is there again",
		},
		"it is not ready itself, and counts": {
			threeDue(of(2, func(i *replacingInstance) { i.ready = false })), replacingUnready, "x-2",
			"when it is ready",
		},
		"one that does not count is first, and need not be ready": {
			threeDue(replacedAlready(2), of(0, func(i *replacingInstance) {
				*i = replacingInstance{name: i.name,
					due: i.due}
			})),
			replacingReplaced, "x-0", "x-0 is copied",
		},
		"its claim was deleted before the operator ended": {
			threeDue(of(0, func(i *replacingInstance) { i.going = true })), replacingReplaced, "x-0", "x-0 is copied",
		},
		"its Pod ends": {
			threeDue(of(0, func(i *replacingInstance) { i.going, i.exists, i.ready = true, false, false })),
			replacingEnding, "x-0", "when its Pod has ended",
		},
		"its claim was deleted, and it leads by now": {
			threeDue(replacedAlready(0, 2), of(1, func(i *replacingInstance) { i.going = true })),
			replacingHandOver, "x-1", "hands over",
		},
		"two have lost their volumes": {
			threeDue(of(0, func(i *replacingInstance) { i.going, i.ready = true, false }),
				of(2, func(i *replacingInstance) { i.going, i.ready = true, false })),
			replacingOthers, "x-2", "data-x-0 is there again",
		},
		"it was not decided yet": {threeDue(func(v *replacingView) { v.undecided = true }), replacingDecided, "x-2",
			"in force"},
		"the StatefulSet would make other claims": {
			threeDue(func(v *replacingView) { v.template = false }), replacingTemplate, "x-2", "Pods run on",
		},
		"the primary has refused": {
			threeDue(replacedAlready(0, 2), func(v *replacingView) { v.refused = "x-0 is behind" }),
			replacingRefused, "x-1", "behind",
		},
		"the primary has refused an earlier request": {
			threeDue(func(v *replacingView) { v.refused = "x-0 is behind" }), replacingReplaced, "x-2", "x-2 is copied",
		},
	} {
		got := decideReplacing(c.view)
		if got.reason != c.reason || got.target != c.target || !strings.Contains(got.message, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// From any state one step touches one instance at most, and never one without which no majority has the data.
func TestNoStepTouchesAVolumeThatIsNeeded(t *testing.T) {
	acts := []string{replacingReplaced, replacingHandOver}
	touched := 0
	for state := range 1 << 12 {
		v := threeDue()
		for n := range v.instances {
			bits := state >> (4 * n)
			i := &v.instances[n]
			i.ready, i.counts, i.bound = bits&1 == 0, bits&2 == 0, bits&4 == 0
			if bits&8 != 0 {
				i.due = nil
			}
		}
		d := decideReplacing(v)
		if !slices.Contains(acts, d.reason) {
			continue
		}
		touched++
		for _, i := range v.instances {
			if i.name != d.target && (!i.ready || !i.counts || !i.bound) {
				t.Fatalf("%s of %s, and %s lacks something: %+v", d.reason, d.target, i.name, v)
			}
		}
		if d.reason == replacingReplaced && d.target == v.primary {
			t.Fatalf("the primary's volume goes: %+v", v)
		}
	}
	if touched == 0 {
		t.Error("no state lets anything be done")
	}
}

func TestTheConditionSaysWhatIsLeft(t *testing.T) {
	got := decideReplacing(threeDue(replacedAlready(2))).verdict()
	want := "x-0 is copied onto a new volume. Volumes to be made anew: x-0; x-1, which hands over first"
	if got.Message != want {
		t.Errorf("it says %q, want %q", got.Message, want)
	}
}

package storage

import (
	"testing"
)

func TestAVolumeGoesOnlyWhenNothingIsOnItThatThePrimaryHasNot(t *testing.T) {
	released := volume{
		instance: "x-2", ordinal: 2, want: 1, deletes: true, scaled: true, primary: "x-0", voters: []string{"x-0"},
	}
	with := func(change func(*volume)) volume {
		v := released
		change(&v)
		return v
	}
	for name, c := range map[string]struct {
		volume volume
		reason string
	}{
		"its instance was scaled away, and counts no more": {released, removalReleased},
		"the spec wants its instance":                      {with(func(v *volume) { v.want = 3 }), removalWanted},
		"volumes of instances that are scaled away stay": {
			with(func(v *volume) { v.deletes = false }), removalRetained,
		},
		"the StatefulSet is gone, or still has the instance": {
			with(func(v *volume) { v.scaled = false }), removalNotScaled,
		},
		"a Pod uses it":       {with(func(v *volume) { v.pod = "x-2" }), removalUsed},
		"a restore is wanted": {with(func(v *volume) { v.restoring = true }), removalRestoring},
		"nobody is known to take writes": {
			with(func(v *volume) { v.primary, v.voters = "", nil }), removalNoPrimary,
		},
		"the primary does not say who counts": {with(func(v *volume) { v.voters = nil }), removalUnknown},
		"its instance still counts": {
			with(func(v *volume) { v.voters = []string{"x-0", "x-2"} }), removalVoting,
		},
		"its instance is the primary":           {with(func(v *volume) { v.primary = "x-2" }), removalVoting},
		"the primary's volume is being deleted": {with(func(v *volume) { v.going = true }), removalGoing},
		"a restore in place has set its data aside there": {
			with(func(v *volume) { v.setAside = "oops" }), removalSetAside,
		},
		"it is of a former SampleDB, and the primary's is newer": {
			with(func(v *volume) { v.former = true }), removalFormer,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := remove(c.volume)
			if d.reason != c.reason || d.remove != (c.reason == removalReleased) {
				t.Errorf("decided %+v, want %s", d, c.reason)
			}
			silent := map[string]bool{removalReleased: true, removalWanted: true, removalRetained: true}
			if silent[c.reason] != (d.message == "") {
				t.Errorf("it says %q", d.message)
			}
		})
	}
}

// Package bluegreen is about upgrades of a SampleDB to another major version by a second side: an annex, of which the
// SampleDB's own data is upgraded by package major.
package bluegreen

import (
	v1 "toban.dev/api/v1"
	inplace "toban.dev/internal/operator/sampledb/major"
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about upgrades by a second side.
type Topics struct {
	*world.Act
	*bluegreenTopic
	*greenTopic
}

// New are the topics of one reconcile, with what they ask the core for.
func New(a *world.Act, rest world.Rest) *Topics {
	all := &Topics{}
	b := base{a, all, rest, inplace.New(a, rest)}
	*all = Topics{Act: a, bluegreenTopic: &bluegreenTopic{base: b}, greenTopic: &greenTopic{b}}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type base struct {
	*world.Act
	all     *Topics
	rest    world.Rest
	inPlace *inplace.Topics
}

// Add has the core do what it does with them.
func Add(a *world.Act, rest world.Rest, to *world.Annexes) {
	s := New(a, rest)
	to.Phases = append(to.Phases, world.Phase{Name: "upgrade", Before: "upgrade", Run: s.applyUpgrade})
	to.Conditions = append(to.Conditions, func(set world.SetCondition) { set(v1.ConditionSideClosed, s.sideClosed()) })
	to.Look = append(to.Look, s.look)
	to.End = append(to.End, s.end)
	to.Saved = append(to.Saved, s.saved)
	to.Lacks, to.Stays = append(to.Lacks, s.lacks), append(to.Stays, s.stays)
}

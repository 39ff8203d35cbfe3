// Package major is about upgrades of a SampleDB to another major version in place, and their rehearsals: an annex.
package major

import (
	"context"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/versions"
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about upgrades in place.
type Topics struct {
	*world.Act
	*upgradeTopic
	*rehearsalTopic
}

// New are the topics of one reconcile, with what they ask the core for.
func New(a *world.Act, rest world.Rest) *Topics {
	all := &Topics{}
	b := base{a, all, rest, versions.Pulls{Act: a}}
	*all = Topics{Act: a, upgradeTopic: &upgradeTopic{b}, rehearsalTopic: &rehearsalTopic{b}}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type base struct {
	*world.Act
	all   *Topics
	rest  world.Rest
	nodes versions.Pulls
}

// Add has the core do what it does with them.
func Add(a *world.Act, rest world.Rest, to *world.Annexes) {
	s := New(a, rest)
	to.Phases = append(to.Phases,
		world.Phase{Name: "upgrade", Before: "readers", Run: s.applyUpgrade},
		world.Phase{Name: "rehearsal", Before: "readers", Run: s.applyRehearsal, Apart: true})
	to.Record = append(to.Record, s.recordUpgrade)
	to.Conditions = append(to.Conditions, func(set world.SetCondition) { set(v1.ConditionUpgraded, s.Upgraded) })
	to.Look = append(to.Look, s.look)
	to.End = append(to.End, s.end)
}

// end has no upgrade of a SampleDB that is being deleted go on. The instance whose volume an upgrade in place works on
// undoes that when it starts for the last backup; what it runs already, it runs on.
func (s *Topics) end(ctx context.Context) (waiting string, err error) {
	if s.Upgrade == nil {
		return "", nil
	}
	return "", s.EndUpgrade(ctx)
}

// Package versions is about other versions of PostgreSQL in a SampleDB: its image, updates, upgrades and their
// rehearsals, those with two sides (blue/green), and the work in the databases afterwards.
package versions

import (
	"context"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about changes of the version of a SampleDB.
type Topics struct {
	*world.Act
	*imageTopic
	*maintenanceTopic
	*upgradeTopic
	*bluegreenTopic
	*greenTopic
	*rehearsalTopic
}

// New are the topics of one reconcile, with the others.
func New(a *world.Act, others Others) *Topics {
	all := &Topics{}
	b := base{a, all, others}
	*all = Topics{
		Act:              a,
		imageTopic:       &imageTopic{base: b},
		maintenanceTopic: &maintenanceTopic{base: b},
		upgradeTopic:     &upgradeTopic{base: b},
		bluegreenTopic:   &bluegreenTopic{base: b},
		greenTopic:       &greenTopic{base: b},
		rehearsalTopic:   &rehearsalTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type base struct {
	*world.Act
	all    *Topics
	others Others
}

// Others is what these topics ask other topics for.
type Others interface {
	// Readiness is what the condition Ready says.
	Readiness() world.Verdict
	// Unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
	Unready() *world.Verdict
	// Known is what was learned before and must be kept.
	Known() (desired.Known, error)
	// ApplyConfig writes the ConfigMap.
	ApplyConfig(context.Context) error
	// KeepUp keeps the database running until its last backup is taken.
	KeepUp(context.Context) error
	// InstanceStatuses says how the instances are.
	InstanceStatuses() []v1.InstanceStatus
}

package sampledb

import (
	"context"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
)

// versionsAll are the topics about changes of the version of a SampleDB.
type versionsAll struct {
	*act
	*imageTopic
	*maintenanceTopic
	*upgradeTopic
	*bluegreenTopic
	*greenTopic
	*rehearsalTopic
}

// newVersions are the topics of one reconcile, with the others.
func newVersions(a *act, others versionsOthers) *versionsAll {
	all := &versionsAll{}
	b := versionsBase{a, all, others}
	*all = versionsAll{
		act:              a,
		imageTopic:       &imageTopic{versionsBase: b},
		maintenanceTopic: &maintenanceTopic{versionsBase: b},
		upgradeTopic:     &upgradeTopic{versionsBase: b},
		bluegreenTopic:   &bluegreenTopic{versionsBase: b},
		greenTopic:       &greenTopic{versionsBase: b},
		rehearsalTopic:   &rehearsalTopic{versionsBase: b},
	}
	return all
}

// versionsBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type versionsBase struct {
	*act
	all    *versionsAll
	others versionsOthers
}

// versionsOthers is what these topics ask other topics for.
type versionsOthers interface {
	// readiness is what the condition Ready says.
	readiness() verdict
	// unready is what keeps the SampleDB from being ready besides an upgrade, nil where nothing does.
	unready() *verdict
	// known is what was learned before and must be kept.
	known() (desired.Known, error)
	// applyConfig writes the ConfigMap.
	applyConfig(context.Context) error
	// keepUp keeps the database running until its last backup is taken.
	keepUp(context.Context) error
	// instanceStatuses says how the instances are.
	instanceStatuses() []v1.InstanceStatus
}

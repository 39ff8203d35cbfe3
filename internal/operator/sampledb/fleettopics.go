package sampledb

// fleetAll are the topics about the instances and the readers of a SampleDB.
type fleetAll struct {
	*act
	*fleetTopic
	*exchangeTopic
	*machinesTopic
	*handoverTopic
	*readersTopic
}

// newFleet are the topics of one reconcile, with the others.
func newFleet(a *act, others fleetOthers) *fleetAll {
	all := &fleetAll{}
	b := fleetBase{a, all, others}
	*all = fleetAll{
		act:           a,
		fleetTopic:    &fleetTopic{fleetBase: b},
		exchangeTopic: &exchangeTopic{fleetBase: b},
		machinesTopic: &machinesTopic{fleetBase: b},
		handoverTopic: &handoverTopic{fleetBase: b},
		readersTopic:  &readersTopic{fleetBase: b},
	}
	return all
}

// fleetBase is what each of these topics has: what is known, what it acts with, and whom it asks for something.
type fleetBase struct {
	*act
	all    *fleetAll
	others fleetOthers
}

// fleetOthers is what these topics ask other topics for.
type fleetOthers interface {
	// readiness is what the condition Ready says.
	readiness() verdict
}

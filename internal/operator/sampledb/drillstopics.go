package sampledb

// drillsAll are the topics about the FaultDrills that a SampleDB asks for.
type drillsAll struct {
	*act
	*drillsTopic
}

// newDrills are the topics of one reconcile.
func newDrills(a *act) *drillsAll {
	all := &drillsAll{}
	b := drillsBase{a, all}
	*all = drillsAll{
		act:         a,
		drillsTopic: &drillsTopic{drillsBase: b},
	}
	return all
}

// drillsBase is what each of these topics has: what is known, what it acts with, and the other ones.
type drillsBase struct {
	*act
	all *drillsAll
}

package sampledb

// frontAll are the topics about the poolers of a SampleDB.
type frontAll struct {
	*act
	*frontTopic
}

// newFront are the topics of one reconcile.
func newFront(a *act) *frontAll {
	all := &frontAll{}
	b := frontBase{a, all}
	*all = frontAll{
		act:        a,
		frontTopic: &frontTopic{frontBase: b},
	}
	return all
}

// frontBase is what each of these topics has: what is known, what it acts with, and the other ones.
type frontBase struct {
	*act
	all *frontAll
}

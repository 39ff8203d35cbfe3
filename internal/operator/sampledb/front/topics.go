// Package front is about the poolers of a SampleDB.
package front

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the poolers of a SampleDB.
type Topics struct {
	*world.Act
	*frontTopic
}

// New are the topics of one reconcile.
func New(a *world.Act) *Topics {
	all := &Topics{}
	b := base{a, all}
	*all = Topics{
		Act:        a,
		frontTopic: &frontTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and the other ones.
type base struct {
	*world.Act
	all *Topics
}

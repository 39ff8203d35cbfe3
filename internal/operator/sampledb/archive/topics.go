// Package archive is about the archive of a SampleDB: its keys, what is kept in it and whether it is intact, and when
// backups are due.
package archive

import (
	"toban.dev/internal/operator/sampledb/world"
)

// Topics are the topics about the archive of a SampleDB.
type Topics struct {
	*world.Act
	*archiveTopic
	*backupsTopic
}

// New are the topics of one reconcile.
func New(a *world.Act) *Topics {
	all := &Topics{}
	b := base{a, all}
	*all = Topics{
		Act:          a,
		archiveTopic: &archiveTopic{base: b},
		backupsTopic: &backupsTopic{base: b},
	}
	return all
}

// base is what each of these topics has: what is known, what it acts with, and the other ones.
type base struct {
	*world.Act
	all *Topics
}

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
	all := &Topics{Act: a}
	b := base{Act: a, All: all}
	all.archiveTopic = &archiveTopic{base: b}
	all.backupsTopic = &backupsTopic{base: b}
	return all
}

// base is what each of these topics has.
type base = world.Base[Topics, any]

package sampledb

// archiveAll are the topics about the archive of a SampleDB.
type archiveAll struct {
	*act
	*archiveTopic
	*backupsTopic
	*secondTopic
}

// newArchive are the topics of one reconcile.
func newArchive(a *act) *archiveAll {
	all := &archiveAll{}
	b := archiveBase{a, all}
	*all = archiveAll{
		act:          a,
		archiveTopic: &archiveTopic{archiveBase: b},
		backupsTopic: &backupsTopic{archiveBase: b},
		secondTopic:  &secondTopic{archiveBase: b},
	}
	return all
}

// archiveBase is what each of these topics has: what is known, what it acts with, and the other ones.
type archiveBase struct {
	*act
	all *archiveAll
}

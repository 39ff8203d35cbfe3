package v1

// Reasons of UpToDate. docs/upgrade.md has more about each.
const (
	// ReasonUpToDate: what runs is what the image has, or newer. The message names the newest major version.
	// To do: nothing.
	ReasonUpToDate = "UpToDate"

	// ReasonMinorOutdated: the image has a newer minor version than the one that runs. Minor versions have fixes only.
	// To do: what the message says: wait until it is taken over by itself, or `kubectl annotate sampledb NAME
	// toban.dev/update=now`. The instances are replaced one by one, standbys first, and the primary hands over.
	ReasonMinorOutdated = "MinorOutdated"

	// ReasonInstancesDiffer: the instances run different versions or images, because a tag became another image
	// between the starts of their Pods.
	// To do: what the message says: wait until it is taken over by itself, or `kubectl annotate sampledb NAME
	// toban.dev/update=now`.
	ReasonInstancesDiffer = "InstancesDiffer"

	// ReasonEndOfLife: the PostgreSQL project makes no fixes for this major version any more.
	// To do: raise `spec.version`, which upgrades the data (docs/upgrade.md).
	ReasonEndOfLife = "EndOfLife"

	// ReasonEndOfLifeNear: in less than 180 days there will be no fixes for this major version any more.
	// To do: plan the move to a newer major version.
	ReasonEndOfLifeNear = "EndOfLifeNear"

	// ReasonNotLooked: nobody has looked into the image yet, which happens ten minutes after the first start.
	// To do: wait.
	ReasonNotLooked = "NotLooked"

	// ReasonImageNotRead: the image could not be looked into; the message says why. It is tried again after an hour.
	// To do: see the message. Backups, failovers and the rest go on without it.
	ReasonImageNotRead = "ImageNotRead"
)

// Reasons of SideClosed.
const (
	// ReasonSideClosed: the second side lets no client in, and none is there.
	// To do: nothing.
	ReasonSideClosed = "SideClosed"

	// ReasonSideOpen: the second side serves clients.
	// To do: nothing.
	ReasonSideOpen = "SideOpen"
)

// Reasons of Upgraded. docs/upgradesteps.md has the steps.
const (
	// ReasonUpgraded: the data was upgraded; the message says how long no client was let in, and until when the data of
	// the former version is kept.
	// To do: look whether all is as it should be, then `kubectl annotate sampledb NAME toban.dev/accept-upgrade=yes`,
	// which removes the former data. It is removed by itself after `spec.upgrade.keep`.
	ReasonUpgraded = "Upgraded"

	// ReasonUpgrading: the data is being upgraded to another major version, or is about to be; the message names the
	// step.
	// To do: wait. To give it up before the step Closing, set `spec.version` back.
	ReasonUpgrading = "Upgrading"

	// ReasonUpgradeFailed: the data could not be upgraded; the message says why. PostgreSQL runs with the former
	// version and all data.
	// To do: mend what the message names, then `kubectl annotate sampledb NAME toban.dev/update=now`; or set
	// `spec.version` back.
	ReasonUpgradeFailed = "UpgradeFailed"

	// ReasonNotRehearsed: the upgrade was to be rehearsed, and that could not be done, so that it is not known whether
	// there are problems; the message says why. PostgreSQL runs with the former version and all data.
	// To do: mend what the message names, then `kubectl annotate sampledb NAME toban.dev/update=now`; or upgrade
	// without a rehearsal, with `spec.upgrade.rehearse: Never`; or set `spec.version` back.
	ReasonNotRehearsed = "NotRehearsed"
)

// Reasons of CollationsCurrent. docs/upgrade.md has more about it, under "Sorting".
const (
	// ReasonCollationsCurrent: texts are sorted as they were when the indexes were made.
	// To do: nothing.
	ReasonCollationsCurrent = "CollationsCurrent"

	// ReasonCollationsChanged: the C library or ICU sorts texts in another order than the one on record, and indexes
	// may be out of order: rows may not be found, and unique constraints may not hold.
	// To do: what the message says: wait, or `kubectl annotate sampledb NAME toban.dev/reindex=now`. The indexes are
	// rebuilt while the database is used.
	ReasonCollationsChanged = "CollationsChanged"

	// ReasonRebuilding: the Job NAME-finish rebuilds the indexes. status.finish says how far it is.
	// To do: wait. If it stays at one index, a long transaction holds it up: end that.
	ReasonRebuilding = "Rebuilding"

	// ReasonDuplicateKeys: a unique index can't be rebuilt, because rows have the same key: they were written while the
	// index was out of order. The message names the columns.
	// To do: find the rows, with enable_indexscan, enable_indexonlyscan and enable_bitmapscan off; remove one of each;
	// then `kubectl annotate sampledb NAME toban.dev/reindex=now`.
	ReasonDuplicateKeys = "DuplicateKeys"

	// ReasonRebuildFailed: some index could not be rebuilt; the message says why.
	// To do: what the message says, then `kubectl annotate sampledb NAME toban.dev/reindex=now`.
	ReasonRebuildFailed = "RebuildFailed"

	// ReasonVersionNotRecorded: a database has no version of its sort order on record, so it is not known whether its
	// indexes are in order. That is so after some ways to bring data from elsewhere.
	// To do: `kubectl annotate sampledb NAME toban.dev/reindex=now` rebuilds them and puts the version on record.
	ReasonVersionNotRecorded = "VersionNotRecorded"

	// ReasonCollationsNotRead: the primary has not looked yet, or could not; the message says why.
	// To do: wait a minute. If it stays, see what the message says.
	ReasonCollationsNotRead = "CollationsNotRead"
)

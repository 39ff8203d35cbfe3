package sampledb

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/protocol"
)

// world is what is known of a SampleDB in one reconcile, with the questions about it that more than one topic asks. A
// topic reads it, and sets nothing but the outcomes that are its own.
type world struct {
	*core
	restoreFacts
	upgradeFacts
	archiveFacts
	stopFacts
	fleetFacts
	secretFacts
	storageFacts
}

// newWorld adds the questions to what is known.
func newWorld(c *core) *world {
	r, u := restoreFacts{c}, upgradeFacts{c}
	stop, secret := stopFacts{c, r}, secretFacts{c, r}
	fleet := fleetFacts{c, r, u, stop, secret}
	return &world{
		core: c, restoreFacts: r, upgradeFacts: u, archiveFacts: archiveFacts{c, fleet}, stopFacts: stop,
		fleetFacts: fleet, secretFacts: secret, storageFacts: storageFacts{c},
	}
}

// restoreFacts has questions about restores.
type restoreFacts struct{ *core }

// upgradeFacts has questions about updates and upgrades.
type upgradeFacts struct{ *core }

// archiveFacts has questions about the archive.
type archiveFacts struct {
	*core
	fleetFacts
}

// stopFacts has questions about stops.
type stopFacts struct {
	*core
	restoreFacts
}

// fleetFacts has questions about the instances and their Pods.
type fleetFacts struct {
	*core
	restoreFacts
	upgradeFacts
	stopFacts
	secretFacts
}

// secretFacts has questions about secrets and certificates.
type secretFacts struct {
	*core
	restoreFacts
}

// storageFacts has questions about volumes.
type storageFacts struct{ *core }

// core is what is known of a SampleDB in one reconcile.
type core struct {
	// db is the SampleDB as the cache has it; deletionPolicy is Retain where its deletion does not mean the
	// data, and storage.size is the size in force. Nobody changes it.
	db *v1.SampleDB
	// backup is its spec.backup with defaults, nil where it has no archive.
	backup *v1.BackupSpec
	// deletionPolicy is what becomes of the data when the SampleDB is being deleted.
	deletionPolicy deletionPolicy
	// settings are the operator's.
	settings desired.Settings
	// now is the time at which the reconcile began.
	now time.Time
	// seen is what observe has read.
	seen observed
	// written is the config as the ConfigMap has it, empty where that is not ours or can't be read.
	written protocol.Config
	// config is what the agents should run with.
	config protocol.Config
	// wrote is spec.storage as the user wrote it.
	wrote volumes.AskedStorage

	// problem is the first that the reconcile met, nil if none. It has blocked what comes after where blocked is true.
	problem *problem
	blocked bool
	outcomes
	// reported is the status as it was last computed.
	reported v1.SampleDBStatus
	// events are to be emitted when the status is written.
	events []event
}

// outcomes are what one topic finds out or decides, and others read. Each has one topic that sets it.
type outcomes struct {
	// initializedAt is when the init Job had done its work, nil before.
	initializedAt *metav1.Time
	// storage is what was found out about the volumes.
	storage verdict
	// grownAt is when any volume last grew by itself, nil for never.
	grownAt *metav1.Time
	// password is which password is where.
	password v1.PasswordStatus
	// trust identifies the authorities that NAME-app tells clients besides the SampleDB's own, "" for none.
	trust string
	// appHosts is of how many instances NAME-app names the hosts; 0 for one of an earlier release.
	appHosts int32
	// authority is which authorities count, and where; authorityWaits that it waits for nothing else than time.
	authority      v1.AuthorityStatus
	authorityWaits bool
	// rehearsal is the last one that was asked for alone, nil where there was none.
	rehearsal *v1.RehearsalStatus
	// pooler is what is on record of the poolers.
	pooler v1.PoolerStatus
	// image is what is known of the image, nil before anything is.
	image *v1.ImageStatus
	// update is how far an update is, nil where there is none.
	update *v1.UpdateStatus
	// upgrade is how far an upgrade to another major version is, nil where there was none; upgradeNext is when that
	// changes by itself, zero for never, upgraded the condition.
	upgrade     *v1.UpgradeStatus
	upgradeNext time.Time
	upgraded    verdict
	// restart is the last one of the servers that was asked for, nil where there was none.
	restart *v1.RestartStatus
	// restore is the status of spec.restoreFrom or spec.restore, once restoreSeen, restored the condition Restored.
	restore     *v1.RestoreStatus
	restoreSeen bool
	restored    verdict
	// loss is whether the data is lost for good.
	loss loss
	// stop is how far a stop is, or the start after it, nil where the database is to serve and does.
	stop *v1.StopStatus
	// stopped says why no instance may run for now, nil where they may.
	stopped *problem
	// scaling is about the number of Pods, decision about restarts of Pods and servers.
	scaling  scaling
	decision decision
	// planned is when backups are due.
	planned plannedBackup
	// vain says that elections are in vain; nothing where that is not so.
	vain verdict
	// moving says why another instance is about to become primary, "" when none is.
	moving string
}

// instances are those wanted, by ordinal: from 0 to this, exclusively.
func (s *core) instances() int { return len(s.config.Members) }

// starting says that the SampleDB has never been initialised.
func (s *core) starting() bool { return s.initializedAt == nil }

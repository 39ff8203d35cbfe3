// Package world is what all topics of a SampleDB's work have in common: what is known in a reconcile (World), with the
// questions about it that more than one topic asks, what topics act with (Effects), and what conditions and events are
// made of. It knows no topic.
package world

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/volumes"
	"toban.dev/internal/protocol"
)

// World is what is known of a SampleDB in one reconcile, with the questions about it that more than one topic asks. A
// topic reads it, and sets nothing but the outcomes that are its own.
type World struct {
	*Core
	restoreFacts
	upgradeFacts
	archiveFacts
	stopFacts
	fleetFacts
	secretFacts
	storageFacts
}

// New adds the questions to what is known.
func New(c *Core) *World {
	r, u := restoreFacts{c}, upgradeFacts{c}
	stop, secret := stopFacts{c, r}, secretFacts{c, r}
	fleet := fleetFacts{c, r, u, stop, secret}
	return &World{
		Core: c, restoreFacts: r, upgradeFacts: u, archiveFacts: archiveFacts{c, fleet}, stopFacts: stop,
		fleetFacts: fleet, secretFacts: secret, storageFacts: storageFacts{c},
	}
}

// restoreFacts has questions about restores.
type restoreFacts struct{ *Core }

// upgradeFacts has questions about updates and upgrades.
type upgradeFacts struct{ *Core }

// archiveFacts has questions about the archive.
type archiveFacts struct {
	*Core
	fleetFacts
}

// stopFacts has questions about stops.
type stopFacts struct {
	*Core
	restoreFacts
}

// fleetFacts has questions about the instances and their Pods.
type fleetFacts struct {
	*Core
	restoreFacts
	upgradeFacts
	stopFacts
	secretFacts
}

// secretFacts has questions about secrets and certificates.
type secretFacts struct {
	*Core
	restoreFacts
}

// storageFacts has questions about volumes.
type storageFacts struct{ *Core }

// Core is what is known of a SampleDB in one reconcile.
type Core struct {
	// DB is the SampleDB as the cache has it; DeletionPolicy is Retain where its deletion does not mean the
	// data, and storage.size is the size in force. Nobody changes it.
	DB *v1.SampleDB
	// Backup is its spec.backup with defaults, nil where it has no archive.
	Backup *v1.BackupSpec
	// DeletionPolicy is what becomes of the data when the SampleDB is being deleted.
	DeletionPolicy DeletionPolicy
	// OperatorSettings are the operator's.
	OperatorSettings desired.Settings
	// Now is the time at which the reconcile began.
	Now time.Time
	// Seen is what observe has read.
	Seen Observed
	// Written is the config as the ConfigMap has it, empty where that is not ours or can't be read.
	Written protocol.Config
	// Config is what the agents should run with.
	Config protocol.Config
	// Wrote is spec.storage as the user wrote it.
	Wrote volumes.AskedStorage

	// Problem is the first that the reconcile met, nil if none. It has blocked what comes after where blocked is true.
	Problem *Problem
	Blocked bool
	Outcomes
	// Reported is the status as it was last computed.
	Reported v1.SampleDBStatus
	// QueuedEvents are to be emitted when the status is written.
	QueuedEvents []Event
}

// Outcomes are what one topic finds out or decides, and others read. Each has one topic that sets it.
type Outcomes struct {
	// InitializedAt is when the init Job had done its work, nil before.
	InitializedAt *metav1.Time
	// Storage is what was found out about the volumes.
	Storage Verdict
	// GrownAt is when any volume last grew by itself, nil for never.
	GrownAt *metav1.Time
	SecretOutcomes
	// Rehearsal is the last one that was asked for alone, nil where there was none.
	Rehearsal *v1.RehearsalStatus
	// Pooler is what is on record of the poolers.
	Pooler v1.PoolerStatus
	// Image is what is known of the image, nil before anything is.
	Image *v1.ImageStatus
	// Update is how far an update is, nil where there is none.
	Update *v1.UpdateStatus
	// Upgrade is how far an upgrade to another major version is, nil where there was none; UpgradeNext is when that
	// changes by itself, zero for never, upgraded the condition.
	Upgrade     *v1.UpgradeStatus
	UpgradeNext time.Time
	Upgraded    Verdict
	// Restart is the last one of the servers that was asked for, nil where there was none.
	Restart *v1.RestartStatus
	RestoreOutcomes
	// Stop is how far a stop is, or the start after it, nil where the database is to serve and does.
	Stop *v1.StopStatus
	// Stopped says why no instance may run for now, nil where they may.
	Stopped *Problem
	// Scaling is about the number of Pods, decision about restarts of Pods and servers.
	Scaling  Scaling
	Decision Decision
	// Planned is when backups are due.
	Planned PlannedBackup
	// Vain says that elections are in vain; nothing where that is not so.
	Vain Verdict
	// Moving says why another instance is about to become primary, "" when none is.
	Moving string
}

// SecretOutcomes are those about passwords, certificates and authorities.
type SecretOutcomes struct {
	// Password is which password is where.
	Password v1.PasswordStatus
	// Trust identifies the authorities that NAME-app tells clients besides the SampleDB's own, "" for none.
	Trust string
	// AppHosts is of how many instances NAME-app names the hosts; 0 for one of an earlier release.
	AppHosts int32
	// Authority is which authorities count, and where; AuthorityWaits that it waits for nothing else than time.
	Authority      v1.AuthorityStatus
	AuthorityWaits bool
}

// RestoreOutcomes are those about data that comes back, or is lost.
type RestoreOutcomes struct {
	// Restore is the status of spec.restoreFrom or spec.restore, once RestoreSeen, restored the condition Restored.
	Restore     *v1.RestoreStatus
	RestoreSeen bool
	Restored    Verdict
	// Loss is whether the data is lost for good.
	Loss Loss
}

// Stamp is the time of the reconcile as the status has times.
func (s *Core) Stamp() *metav1.Time {
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	return &at
}

// Instances are those wanted, by ordinal: from 0 to this, exclusively.
func (s *Core) Instances() int { return len(s.Config.Members) }

// Ordinals are those of the instances that are wanted, and of those whose Pod is there.
func (s *World) Ordinals() map[int]bool {
	ordinals := map[int]bool{}
	for i := range s.Instances() {
		ordinals[i] = true
	}
	for i := range s.Seen.Pods {
		ordinals[i] = true
	}
	return ordinals
}

// Starting says that the SampleDB has never been initialised.
func (s *Core) Starting() bool { return s.InitializedAt == nil }

// The reasons of decisions about the data of a SampleDB that is being deleted.
const (
	// spec.DeletionPolicy says what becomes of it.
	DeletionByPolicy = "ByPolicy"
	// all that belongs to the SampleDB stays, and runs on.
	DeletionOrphaned = "Orphaned"
	// its kind goes, and takes all objects with it; that is no wish about any of them.
	DeletionUninstalled = "Uninstalled"
	// the operator may not see whether its kind goes, and so never knows what is meant.
	DeletionUnreadable = "Unreadable"
	// why it is deleted is not known now.
	DeletionUnknown = "Unknown"
)

// DeletionPolicy is what becomes of the data, and why.
type DeletionPolicy struct{ Reason, Message string }

// Spares says that the data stays although nobody has said so.
func (f DeletionPolicy) Spares() bool {
	return f.Reason == DeletionUninstalled || f.Reason == DeletionUnreadable
}

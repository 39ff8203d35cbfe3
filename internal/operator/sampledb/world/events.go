package world

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// The events of a SampleDB, all of them: what a person would want to be told.
const (
	EventPrimaryReady   = "PrimaryReady"   // an instance takes writes, the first one or the same as before
	EventPrimaryChanged = "PrimaryChanged" // another instance takes writes
	// No instance takes writes, and the agents say why none is promoted.
	EventNotPromoted       = "NotPromoted"
	EventSwitchover        = "Switchover"            // another instance was asked to take over, and has
	EventSwitchoverRefused = "SwitchoverRefused"     // it was asked to and can't
	EventAuthorityRotated  = "AuthorityRotated"      // how far another authority is
	EventPasswordRotated   = "PasswordRotated"       // the Secret NAME-app and the server have another password
	EventNoPrimary         = "NoPrimary"             // writes are no longer taken
	EventCommitsCancelled  = "CommitsCancelled"      // clients have cancelled commits that waited for standbys
	EventReady             = "Ready"                 // everything is as the spec wants it
	EventInitialized       = "Initialized"           // the init Job has done its work
	EventInitFailed        = "InitFailed"            // the init Job says why; mend spec.init
	EventRejected          = "ConfigurationRejected" // PostgreSQL refuses a parameter; the servers run as before
	EventApplied           = "ConfigurationApplied"  // every instance runs with the parameters
	EventBlocked           = "Blocked"               // the user has to do something
	EventScaling           = "Scaling"               // instances are added or removed
	eventReplacing         = "Replacing"             // a Pod is replaced for a change of the spec
	EventPodResized        = "PodResized"            // a Pod gets other resources while it runs
	eventRestarting        = "Restarting"            // a server restarts for a parameter, or because it was asked for
	EventRestarted         = "Restarted"             // the servers are restarted for which that was asked
	EventRestartRefused    = "RestartRefused"        // it was asked for and can't be
	EventStopped           = "Stopped"               // by spec.stopped no instance runs; with what the archive has
	EventSleeping          = "Sleeping"              // by spec.sleepAfter no instance runs; with what the archive has
	EventWoken             = "Woken"                 // one that slept takes writes again, after so many seconds
	EventStarted           = "Started"               // an instance takes writes again, after so many seconds
	EventResizing          = "Resizing"              // a volume grows
	EventResized           = "Resized"               // every volume has its size
	EventResizeRefused     = "ResizeRefused"         // a volume can't grow
	EventReplacingVolume   = "ReplacingVolume"       // an instance is copied onto a new volume, for spec.storage
	EventNotReplaced       = "VolumesNotReplaced"    // the data does not fit, or a lone instance can't be copied
	EventGrowing           = "Growing"               // the volumes are enlarged by themselves
	EventVolumeShort       = "VolumeShort"           // one is nearly full, or soon, or can't grow; or WAL is kept
	EventRoomAgain         = "RoomAgain"             // no more
	EventCleaningUp        = "CleaningUp"            // the SampleDB is deleted
	EventDataKept          = "DataKept"              // it is deleted, and its volumes stay whatever DeletionPolicy says
	EventRestoring         = "Restoring"             // the data of spec.restoreFrom is being brought back
	EventRestored          = "Restored"              // it is there
	EventDataLost          = "DataLost"              // no volume has the data; it begins again from the archive
	EventOutdated          = "Outdated"              // the PostgreSQL version that runs is old, or differs
	EventUpdating          = "Updating"              // the instances move on to a newer minor version
	EventUpdateAhead       = "UpdateAhead"           // they will, and when that is
	EventUpdated           = "Updated"               // all of them run it
	EventUpdateFailed      = "UpdateFailed"          // a node can't get its image; nothing has been touched
	EventAgentReplaced     = "AgentReplaced"         // an agent goes on as the operator's program
	EventAgentFailed       = "AgentFailed"           // one could not; the others keep theirs
	EventUpdateRefused     = "UpdateRefused"         // it was asked for, and there is none
	EventRehearsed         = "Rehearsed"             // an upgrade was done on a copy, or that could not be
	EventUpgrading         = "Upgrading"             // the data is that of another major version now
	EventUpgraded          = "Upgraded"              // it takes writes
	EventUpgradeFailed     = "UpgradeFailed"         // the former version runs on, or again
	EventSidesChanged      = "SidesChanged"          // clients are led to the other side of a blue/green upgrade
	EventSidesPutOff       = "SidesPutOff"           // that took too long, or something was in the way
	EventUpgradeAccepted   = "UpgradeAccepted"       // the data of the former version is removed
	EventCollations        = "CollationsCurrent"     // another library sorts texts in another order; or no more
	EventFinished          = "Finished"              // what a change of the image has left in the databases is done
	EventFinishFailed      = "FinishFailed"          // it could not be done
	EventDrill             = "Drill"                 // a FaultDrill was created, because the schedule asks for it
	EventBackup            = "Backup"                // a DatabaseBackup was created, because one is due
	EventMakingRoom        = "MakingRoom"            // the store is full: what is not to be kept is removed
	EventArchiving         = "Archiving"             // the WAL reaches the archive
	EventArchiveFailing    = "ArchiveFailing"        // it does not, or late
	EventArchiveGap        = "ArchiveGap"            // WAL was lost before it was archived
	EventNotRemoved        = "NotRemoved"            // what is not to be kept could not be removed
	EventArchiveBroken     = "ArchiveBroken"         // objects of the archive are not what was written, or are lost
	EventKeyMissing        = "KeyMissing"            // the Secret lacks a key that the archive needs
	EventRetentionHeld     = "RetentionHeld"         // retention has not removed what its rules would have it
	EventCopied            = "Copied"                // the second store has what the archive has
	EventNotCopied         = "NotCopied"             // it does not, or the archive has lost what only the copy has
	eventScheduleInvalid   = "ScheduleInvalid"       // the schedule of the backups can't be understood
	eventBackupOverdue     = "BackupOverdue"         // the last complete backup is older than the schedule promises
	EventActionReported    = "Reconcile"             // the action that every event is reported under

	EventPreferred   = "PreferredPrimary" // the primary is asked to hand over to an instance that is preferred
	EventZoneAtRisk  = "ZoneAtRisk"       // if one zone is lost, nobody takes writes
	EventZonesSpread = "ZonesSpread"      // no more

	EventCertificateServed  = "CertificateServed"  // clients are shown the certificate that the spec gives
	EventCertificateRefused = "CertificateRefused" // what is in its Secret can't be shown
)

// ScheduleEvents are the events by the reasons for which the schedule is not kept.
var ScheduleEvents = map[string]string{
	v1.ReasonScheduleInvalid: eventScheduleInvalid, v1.ReasonBackupOverdue: eventBackupOverdue,
}

// Event is one event about the SampleDB.
type Event struct {
	Kind    string // Normal or Warning
	Reason  string
	Message string
}

// Normal is an event that is as it should be.
func Normal(reason, message string) Event { return Event{corev1.EventTypeNormal, reason, message} }

// Warning is one about which somebody should do something.
func Warning(reason, message string) Event { return Event{corev1.EventTypeWarning, reason, message} }

// AddEvent keeps an event of something that the operator does.
func (s *Core) AddEvent(reason, message string) {
	s.QueuedEvents = append(s.QueuedEvents, Normal(reason, message))
}

// AddWarning keeps one of something that it could not do.
func (s *Core) AddWarning(reason, message string) {
	s.QueuedEvents = append(s.QueuedEvents, Warning(reason, message))
}

// Condition is one of the status, nil where it is not there.
func Condition(status v1.SampleDBStatus, kind string) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, kind)
}

// Turned is a condition whose status or reason has changed, else nil.
func Turned(old, now v1.SampleDBStatus, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(old.Conditions, kind), meta.FindStatusCondition(now.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

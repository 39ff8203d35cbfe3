package sampledb

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// The events of a SampleDB, all of them: what a person would want to be told.
const (
	eventPrimaryReady   = "PrimaryReady"   // an instance takes writes, the first one or the same as before
	eventPrimaryChanged = "PrimaryChanged" // another instance takes writes
	// No instance takes writes, and the agents say why none is promoted.
	eventNotPromoted       = "NotPromoted"
	eventSwitchover        = "Switchover"            // another instance was asked to take over, and has
	eventSwitchoverRefused = "SwitchoverRefused"     // it was asked to and can't
	eventAuthorityRotated  = "AuthorityRotated"      // how far another authority is
	eventPasswordRotated   = "PasswordRotated"       // the Secret NAME-app and the server have another password
	eventNoPrimary         = "NoPrimary"             // writes are no longer taken
	eventReady             = "Ready"                 // everything is as the spec wants it
	eventInitialized       = "Initialized"           // the init Job has done its work
	eventInitFailed        = "InitFailed"            // the init Job says why; mend spec.init
	eventRejected          = "ConfigurationRejected" // PostgreSQL refuses a parameter; the servers run as before
	eventApplied           = "ConfigurationApplied"  // every instance runs with the parameters
	eventBlocked           = "Blocked"               // the user has to do something
	eventScaling           = "Scaling"               // instances are added or removed
	eventReplacing         = "Replacing"             // a Pod is replaced for a change of the spec
	eventPodResized        = "PodResized"            // a Pod gets other resources while it runs
	eventRestarting        = "Restarting"            // a server restarts for a parameter, or because it was asked for
	eventRestarted         = "Restarted"             // the servers are restarted for which that was asked
	eventRestartRefused    = "RestartRefused"        // it was asked for and can't be
	eventStopped           = "Stopped"               // by spec.stopped no instance runs; with what the archive has
	eventSleeping          = "Sleeping"              // by spec.sleepAfter no instance runs; with what the archive has
	eventWoken             = "Woken"                 // one that slept takes writes again, after so many seconds
	eventStarted           = "Started"               // an instance takes writes again, after so many seconds
	eventResizing          = "Resizing"              // a volume grows
	eventResized           = "Resized"               // every volume has its size
	eventResizeRefused     = "ResizeRefused"         // a volume can't grow
	eventReplacingVolume   = "ReplacingVolume"       // an instance is copied onto a new volume, for spec.storage
	eventNotReplaced       = "VolumesNotReplaced"    // the data does not fit, or a lone instance can't be copied
	eventGrowing           = "Growing"               // the volumes are enlarged by themselves
	eventVolumeShort       = "VolumeShort"           // one is nearly full, or soon, or can't grow; or WAL is kept
	eventRoomAgain         = "RoomAgain"             // no more
	eventCleaningUp        = "CleaningUp"            // the SampleDB is deleted
	eventDataKept          = "DataKept"              // it is deleted, and its volumes stay whatever deletionPolicy says
	eventRestoring         = "Restoring"             // the data of spec.restoreFrom is being brought back
	eventRestored          = "Restored"              // it is there
	eventDataLost          = "DataLost"              // no volume has the data; it begins again from the archive
	eventOutdated          = "Outdated"              // the PostgreSQL version that runs is old, or differs
	eventUpdating          = "Updating"              // the instances move on to a newer minor version
	eventUpdated           = "Updated"               // all of them run it
	eventUpdateFailed      = "UpdateFailed"          // a node can't get its image; nothing has been touched
	eventAgentReplaced     = "AgentReplaced"         // an agent goes on as the operator's program
	eventAgentFailed       = "AgentFailed"           // one could not; the others keep theirs
	eventUpdateRefused     = "UpdateRefused"         // it was asked for, and there is none
	eventRehearsed         = "Rehearsed"             // an upgrade was done on a copy, or that could not be
	eventUpgrading         = "Upgrading"             // the data is that of another major version now
	eventUpgraded          = "Upgraded"              // it takes writes
	eventUpgradeFailed     = "UpgradeFailed"         // the former version runs on, or again
	eventSidesChanged      = "SidesChanged"          // clients are led to the other side of a blue/green upgrade
	eventSidesPutOff       = "SidesPutOff"           // that took too long, or something was in the way
	eventUpgradeAccepted   = "UpgradeAccepted"       // the data of the former version is removed
	eventCollations        = "CollationsCurrent"     // another library sorts texts in another order; or no more
	eventFinished          = "Finished"              // what a change of the image has left in the databases is done
	eventFinishFailed      = "FinishFailed"          // it could not be done
	eventDrill             = "Drill"                 // a FaultDrill was created, because the schedule asks for it
	eventBackup            = "Backup"                // a DatabaseBackup was created, because one is due
	eventMakingRoom        = "MakingRoom"            // the store is full: what is not to be kept is removed
	eventArchiving         = "Archiving"             // the WAL reaches the archive
	eventArchiveFailing    = "ArchiveFailing"        // it does not, or late
	eventArchiveGap        = "ArchiveGap"            // WAL was lost before it was archived
	eventNotRemoved        = "NotRemoved"            // what is not to be kept could not be removed
	eventArchiveBroken     = "ArchiveBroken"         // objects of the archive are not what was written, or are lost
	eventKeyMissing        = "KeyMissing"            // the Secret lacks a key that the archive needs
	eventRetentionHeld     = "RetentionHeld"         // retention has not removed what its rules would have it
	eventCopied            = "Copied"                // the second store has what the archive has
	eventNotCopied         = "NotCopied"             // it does not, or the archive has lost what only the copy has
	eventScheduleInvalid   = "ScheduleInvalid"       // the schedule of the backups can't be understood
	eventBackupOverdue     = "BackupOverdue"         // the last complete backup is older than the schedule promises
	eventActionReported    = "Reconcile"             // the action that every event is reported under

	eventPreferred   = "PreferredPrimary" // the primary is asked to hand over to an instance that is preferred
	eventZoneAtRisk  = "ZoneAtRisk"       // if one zone is lost, nobody takes writes
	eventZonesSpread = "ZonesSpread"      // no more

	eventCertificateServed  = "CertificateServed"  // clients are shown the certificate that the spec gives
	eventCertificateRefused = "CertificateRefused" // what is in its Secret can't be shown
)

// scheduleEvents are the events by the reasons for which the schedule is not kept.
var scheduleEvents = map[string]string{
	v1.ReasonScheduleInvalid: eventScheduleInvalid, v1.ReasonBackupOverdue: eventBackupOverdue,
}

// event is one event about the SampleDB.
type event struct {
	kind    string // Normal or Warning
	reason  string
	message string
}

// normal is an event that is as it should be.
func normal(reason, message string) event { return event{corev1.EventTypeNormal, reason, message} }

// warning is one about which somebody should do something.
func warning(reason, message string) event { return event{corev1.EventTypeWarning, reason, message} }

// addEvent keeps an event of something that the operator does.
func (s *core) addEvent(reason, message string) { s.events = append(s.events, normal(reason, message)) }

// addWarning keeps one of something that it could not do.
func (s *core) addWarning(reason, message string) {
	s.events = append(s.events, warning(reason, message))
}

// changes are the events that a change of the status tells.
func changes(old, now v1.SampleDBStatus) []event {
	out := primaryChanges(old, now)
	add := func(kind, reason, message string) { out = append(out, event{kind, reason, message}) }
	if c := turned(old, now, v1.ConditionReady); c != nil && c.Status == metav1.ConditionTrue {
		add(corev1.EventTypeNormal, eventReady, c.Message)
	}
	if c := turned(old, now, v1.ConditionInitialized); c != nil {
		switch {
		case c.Status == metav1.ConditionTrue:
			add(corev1.EventTypeNormal, eventInitialized, c.Message)
		case c.Reason != v1.ReasonInitRunning:
			add(corev1.EventTypeWarning, eventInitFailed, c.Message)
		}
	}
	if c := turned(old, now, v1.ConditionRestored); c != nil && c.Status == metav1.ConditionTrue {
		add(corev1.EventTypeNormal, eventRestored, c.Message)
	}
	if c := turned(old, now, v1.ConditionUpToDate); c != nil && c.Status == metav1.ConditionFalse &&
		now.Phase == phaseReady { // else an update may be under way
		add(corev1.EventTypeWarning, eventOutdated, c.Message)
	}
	out = append(out, collationChanges(old, now)...)
	out = append(out, certificateChanges(old, now)...)
	out = append(out, rotationChanges(old, now)...)
	out = append(out, zoneChanges(old, now)...)
	out = append(out, configChanges(old, now)...)
	out = append(out, storageChanges(old, now)...)
	out = append(out, roomChanges(old, now)...)
	out = append(out, archiveChanges(old, now)...)
	out = append(out, brokenChanges(old, now)...)
	out = append(out, keyChanges(old, now)...)
	if old.Phase != now.Phase && now.Phase == phaseBlocked {
		if c := meta.FindStatusCondition(now.Conditions, v1.ConditionReady); c != nil {
			add(corev1.EventTypeWarning, eventBlocked, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	return out
}

// rotationChanges tell of another password, and of each step to another authority.
func rotationChanges(old, now v1.SampleDBStatus) (out []event) {
	if c := turned(old, now, v1.ConditionPasswordRotated); c != nil && c.Status == metav1.ConditionTrue {
		out = append(out, normal(eventPasswordRotated, c.Message))
	}
	if c := turned(old, now, v1.ConditionAuthorityRotated); c != nil && c.Reason != v1.ReasonAuthorityWaits {
		out = append(out, normal(eventAuthorityRotated, c.Reason+": "+c.Message))
	}
	return out
}

// primaryChanges tell who takes writes, or why nobody does.
func primaryChanges(old, now v1.SampleDBStatus) []event {
	var out []event
	add := func(kind, reason, message string) { out = append(out, event{kind, reason, message}) }
	switch last := cmp.Or(old.Primary, old.LastPrimary); {
	case now.Primary == "" || now.Primary == old.Primary:
	case last == "" || last == now.Primary:
		add(corev1.EventTypeNormal, eventPrimaryReady, now.Primary+" takes writes")
	default:
		add(corev1.EventTypeNormal, eventPrimaryChanged, fmt.Sprintf("from %s to %s", last, now.Primary))
	}
	if now.Refusal != "" && now.Refusal != old.Refusal {
		add(corev1.EventTypeWarning, eventNotPromoted,
			fmt.Sprintf("%s: %s", now.Refusal, messageOf(now, v1.ConditionAvailable)))
	}
	if c := turned(old, now, v1.ConditionAvailable); c != nil &&
		c.Status == metav1.ConditionFalse && old.Primary != "" && now.Stop == nil {
		add(corev1.EventTypeWarning, eventNoPrimary, c.Message)
	}
	return out
}

func configChanges(old, now v1.SampleDBStatus) []event {
	c := turned(old, now, v1.ConditionConfigurationApplied)
	switch {
	case c == nil:
	case c.Reason == v1.ReasonParameterRejected:
		return []event{warning(eventRejected, c.Message)}
	case c.Status == metav1.ConditionTrue:
		return []event{normal(eventApplied, c.Message)}
	}
	return nil
}

func storageChanges(old, now v1.SampleDBStatus) []event {
	c := turned(old, now, v1.ConditionStorageReady)
	was := meta.FindStatusCondition(old.Conditions, v1.ConditionStorageReady)
	switch {
	case c == nil || was == nil:
	case c.Reason == v1.ReasonResizeRefused:
		return []event{warning(eventResizeRefused, c.Message)}
	case c.Reason == v1.ReasonDataDoesNotFit, c.Reason == v1.ReasonNeedsAnotherInstance:
		return []event{warning(eventNotReplaced, c.Message)}
	case c.Status == metav1.ConditionTrue && was.Reason == v1.ReasonResizing:
		return []event{normal(eventResized, c.Message)}
	}
	return nil
}

// roomChanges tell that a volume gets short, each reason once, and that none does any more.
func roomChanges(old, now v1.SampleDBStatus) []event {
	c := turned(old, now, v1.ConditionHasRoom)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionFalse:
		return []event{warning(eventVolumeShort, c.Reason+": "+c.Message)}
	case meta.IsStatusConditionFalse(old.Conditions, v1.ConditionHasRoom):
		return []event{normal(eventRoomAgain, c.Message)}
	}
	return nil
}

func messageOf(status v1.SampleDBStatus, kind string) string {
	if c := condition(status, kind); c != nil {
		return c.Message
	}
	return ""
}

// condition is one of the status, nil where it is not there.
func condition(status v1.SampleDBStatus, kind string) *metav1.Condition {
	return meta.FindStatusCondition(status.Conditions, kind)
}

// turned is a condition whose status or reason has changed, else nil.
func turned(old, now v1.SampleDBStatus, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(old.Conditions, kind), meta.FindStatusCondition(now.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

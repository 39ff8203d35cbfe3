package sampledb

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// scope is what the phases of one reconcile share: what was seen, what was
// decided, and what is to be reported. It lives as long as that reconcile.
type scope struct {
	// db is the SampleDB as the cache has it; deletionPolicy is Retain where its deletion does not mean the
	// data, and storage.size is the size in force. Nobody changes it.
	db *v1.SampleDB
	// backup is its spec.backup with defaults, nil where it has no archive.
	backup *v1.BackupSpec
	// fate is what becomes of the data when the SampleDB is being deleted.
	fate fate
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

	// problem is the first that the reconcile met, nil if none. It has blocked what comes after where blocked is true.
	problem *problem
	blocked bool
	// storage and initial are what the phases found out about the volumes and the init Job.
	storage, initial verdict
	// wrote is spec.storage as the user wrote it. anew is the next step towards volumes that it can have only by being
	// made anew, anewNext when that changes by itself, zero where something tells.
	wrote    desired.AskedStorage
	anew     anewStep
	anewNext time.Time
	// growth is whether the data volumes grow by themselves, walGrowth whether the WAL volumes do; grownAt is when any
	// last did, nil for never.
	growth, walGrowth growth
	grownAt           *metav1.Time
	// initializedAt is when the init Job had done its work, nil before.
	initializedAt *metav1.Time
	// password is which password is where. Once passwordSeen, passwordRotated is the condition, where another was asked
	// for.
	password        v1.PasswordStatus
	passwordSeen    bool
	passwordRotated verdict
	// image is what is known of the image, nil before anything is.
	image *v1.ImageStatus
	// update is how far an update is, nil where there is none; updateNext is when that changes by itself, zero for
	// never.
	update     *v1.UpdateStatus
	updateNext time.Time
	// upgrade is how far an upgrade to another major version is, nil where there was none; upgradeNext is when that
	// changes by itself, zero for never, upgraded the condition.
	upgrade     *v1.UpgradeStatus
	upgradeNext time.Time
	upgraded    verdict
	// turns says that the next step of a change of sides is due at once.
	turns bool
	// restart is the last one of the servers that was asked for, nil where there was none.
	restart *v1.RestartStatus
	// rehearsal is the last one that was asked for alone, nil where there was none.
	rehearsal *v1.RehearsalStatus
	// finish is what is left to do in the databases after a change of the image, nil where there was none; finishSays
	// is what becomes of it, finishNext when that changes by itself, zero for never. sortedBy is the image under which
	// texts were last seen sorted as on record.
	finish     *v1.FinishStatus
	finishSays string
	finishNext time.Time
	sortedBy   string
	// agents is which agents run the operator's program; agentsNext is when they are looked at again, zero for never.
	agents     *v1.AgentsStatus
	agentsNext time.Time
	// trust identifies the authorities that NAME-app tells clients besides the SampleDB's own, "" for none.
	trust string
	// appHosts is of how many instances NAME-app names the hosts; 0 for one of an earlier release.
	appHosts int32
	// authority is which authorities count, and where. Once authoritySeen, authorityRotated is the condition, where
	// another was asked for; authorityNext is when the present step has taken its time, authorityWaits that it waits
	// for nothing else.
	authority        v1.AuthorityStatus
	authoritySeen    bool
	authorityRotated verdict
	authorityNext    time.Time
	authorityWaits   bool
	// pooler is what is on record of the poolers, poolerProblem what keeps them from being made.
	pooler        v1.PoolerStatus
	poolerProblem *problem
	// roots are the operator's root secrets that the SampleDB needs, none for the first one alone; rootReplaced is the
	// condition, where there are several.
	roots        []string
	rootReplaced verdict
	// restore is the status of spec.restoreFrom or spec.restore, once restoreSeen, restored the condition Restored.
	restore     *v1.RestoreStatus
	restoreSeen bool
	restored    verdict
	// loss is whether the data is lost for good.
	loss loss
	// stop is how far a stop is, or the start after it, nil where the database is to serve and does.
	stop *v1.StopStatus
	// stopPlan is whether the spec wants it to be stopped.
	stopPlan stopPlan
	// sleepNext is when it may go to sleep, zero where something tells; held says that all poolers are known to hold
	// their clients.
	sleepNext time.Time
	held      bool
	// stopped says why no instance may run for now, nil where they may.
	stopped *problem
	// scaling is about the number of Pods, decision about restarts of Pods and servers.
	scaling  scaling
	decision decision
	// readers is how many readers there are to be, nil before that is decided.
	readers *readersDecision
	// scheduled is the condition Scheduled, plannedBackup when backups are due, verifiesNext when the next verification
	// is (zero where none will be).
	scheduled    verdict
	planned      plannedBackup
	verifiesNext time.Time
	// drillPlanned is when a drill is due.
	drillPlanned plannedDrill
	// machines is the condition OnTime, vain that elections are in vain; nothing where that is not so.
	machines, vain verdict
	// retained is what the Job that removes what is not to be kept has said, nil where there is none, or none yet.
	retained *retained
	// copied is what the Pod of the last Job that copies into the second store has said, nil where there is none, or
	// none yet.
	copied *protocol.CopyResult
	// moving says why another instance is about to become primary, "" when none is.
	moving string
	// preferredNext is when a hand-over to a preferred instance may begin, zero where something tells.
	preferredNext time.Time
	// waiting says what a deletion waits for, "" when for nothing.
	waiting string
	// kept are the volumes that stay when the SampleDB goes, though spec.deletionPolicy is Snapshot.
	kept []string
	// reported is the status as it was last computed.
	reported v1.SampleDBStatus
	// events are to be emitted when the status is written.
	events []event
}

// phase is one step of a reconcile. It returns a problem (see there) where
// the user has to act, and any other error where trying again may help.
type phase struct {
	name string
	run  func(context.Context, *scope) error
	kind kind
}

// kind says what a phase that fails keeps from being done.
type kind int

const (
	// gates: the data, or what Pods mount, is as the phase leaves it. Nothing that touches those is done after its
	// failure.
	gates kind = iota
	// apart: nothing rests on the phase. It is done also after the failure of others while a primary takes writes and
	// no restore is under way, so that a database that serves keeps its Services and its backups.
	apart
	// work: as apart, and it may begin something that a stop would have to wait for. It is not done while one is under
	// way.
	work
)

// verdict is what a condition says.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func yes(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }
func no(reason, message string) verdict  { return verdict{metav1.ConditionFalse, reason, message} }
func unknown(message string) verdict {
	return verdict{metav1.ConditionUnknown, v1.ReasonUnknown, message}
}

// problem is an error that the user can mend: it becomes the reason of the condition Ready.
type problem struct {
	reason  string
	message string
	// wait is how long until it is looked at again, if nothing happens before.
	wait time.Duration
}

func (p *problem) Error() string { return p.reason + ": " + p.message }

// instances are those wanted, by ordinal: from 0 to this, exclusively.
func (s *scope) instances() int { return len(s.config.Members) }

// starting says that the SampleDB has never been initialised.
func (s *scope) starting() bool { return s.initializedAt == nil }

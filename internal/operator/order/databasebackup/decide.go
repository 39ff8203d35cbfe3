package databasebackup

import (
	"time"

	v1 "toban.dev/api/v1"
)

// view is all that the decision depends on.
type view struct {
	name          string
	now, deadline time.Time
	cancel        bool
	db            dbView
	job           jobView
	// snapshot is nil for a backup in the archive.
	snapshot *snapshotView
	// before names what has to end first, "" for nothing.
	before string
}

// dbView is the SampleDB.
type dbView struct {
	found bool
	// notReady is why no backup can be taken now, "" where one can.
	notReady string
}

// jobState is how the Job of the backup is.
type jobState int

const (
	jobNone     jobState = iota // there is none
	jobForeign                  // one of the name is not ours
	jobEnding                   // one that is ours, or a former backup's of the same name, is being deleted
	jobRunning                  // it is there and has not ended
	jobComplete                 // it has ended well
	jobFailed                   // it has ended for good without success
	jobLate                     // it has ended because of its deadline
)

type jobView struct {
	state jobState
	// message says how far it is, or what the last Pod said.
	message string
}

// Action is what is done.
type Action string

// The actions.
const (
	ActionNone   Action = "none"
	ActionCreate Action = "create" // the Job
	ActionStop   Action = "stop"   // delete the Job
)

// Decision is what is done about a backup, and what its condition Complete says.
type Decision struct {
	Action Action
	// Over says that nothing will be done about it any more.
	Over    bool
	Reason  string
	Message string
}

func wait(reason, message string) Decision { return Decision{ActionNone, false, reason, message} }
func over(reason, message string) Decision { return Decision{ActionNone, true, reason, message} }

// decide says what to do. It is pure. The first rule that holds counts: what has ended has ended, whatever
// is wished for; then the user's word; then time; and only then what is under way or may begin.
func decide(v view) Decision {
	switch v.job.state {
	case jobComplete:
		if v.snapshot != nil {
			return v.finish()
		}
		return over(v1.ReasonCompleted, v.job.message)
	case jobFailed:
		return over(v1.ReasonFailed, v.job.message+v.snapshot.trouble())
	case jobLate:
		return over(v1.ReasonDeadlineExceeded, late(v.job.message+v.snapshot.trouble()))
	}
	switch {
	case v.cancel:
		return v.stop(v1.ReasonCancelled, "it was cancelled")
	case !v.now.Before(v.deadline):
		return v.stop(v1.ReasonDeadlineExceeded, late(v.waits().Message))
	}
	if d := v.waits(); d.Reason != "" {
		return d
	}
	return Decision{ActionCreate, false, v1.ReasonRunning, "its Pod is being started"}
}

// waits is the decision to let it go on or wait, without a reason where nothing keeps it from beginning.
func (v view) waits() Decision {
	switch {
	case v.job.state == jobForeign:
		return wait(v1.ReasonBackupNameTaken, v.job.message)
	case v.job.state == jobEnding:
		return wait(v1.ReasonWaiting, v.job.message)
	case v.job.state == jobRunning:
		return wait(v1.ReasonRunning, v.job.message+v.snapshot.trouble())
	case !v.db.found:
		return wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.db.notReady != "":
		return wait(v1.ReasonArchiveNotReady, v.db.notReady)
	case v.snapshot != nil && !v.snapshot.api:
		return wait(v1.ReasonSnapshotAPIMissing, noAPI)
	case v.before != "":
		return wait(v1.ReasonWaiting, v.before)
	}
	return Decision{}
}

// stop ends it, with its Job if there is one.
func (v view) stop(reason, message string) Decision {
	d := over(reason, message)
	if v.job.state == jobRunning {
		d.Action = ActionStop
	}
	return d
}

func late(message string) string {
	if message == "" {
		return "it took longer than spec.deadline"
	}
	return "it took longer than spec.deadline; last: " + message
}

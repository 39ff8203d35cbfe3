package databasebackup

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// view is all that the decision depends on.
type view struct {
	order.View
	name string
	db   dbView
	// known says that its Pod has left which backup it has taken.
	known bool
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

// decide says what to do. It is pure.
func decide(v view) order.Decision {
	if s := v.Job.State; !v.Job.Foreign && (s == jobs.Running || s == jobs.Failed || s == jobs.Late) {
		v.Job.Message += v.snapshot.trouble()
	}
	return v.Decide(v.complete, v.goOn)
}

// lost says of a backup that its result is not known.
const lost = "its Pod was removed before it could say which backup it has taken. One may be in the archive, but " +
	"nothing proves that: take another one"

// complete is the decision where the Job has ended well. Without the Pod's result nothing proves that there is a
// backup, and after the last one the volumes are deleted.
func (v view) complete() order.Decision {
	switch {
	case v.snapshot != nil:
		return v.finish()
	case !v.known:
		return order.Over(v1.ReasonFailed, lost)
	}
	return order.Over(v1.ReasonCompleted, v.Job.Message)
}

// goOn is the decision to let it go on or wait, without a reason where nothing keeps it from beginning.
func (v view) goOn() order.Decision {
	if d := v.Begun(); d.Reason != "" {
		return d
	}
	switch {
	case !v.db.found:
		return order.Wait(v1.ReasonSampleDBNotFound, "there is no SampleDB of that name in the namespace")
	case v.db.notReady != "":
		return order.Wait(v1.ReasonArchiveNotReady, v.db.notReady)
	case v.snapshot != nil && !v.snapshot.api:
		return order.Wait(v1.ReasonSnapshotAPIMissing, noAPI)
	case v.before != "":
		return order.Wait(v1.ReasonWaiting, v.before)
	}
	return order.Decision{}
}

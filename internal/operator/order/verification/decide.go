package verification

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// jobState is how the Job of a verification is.
type jobState int

const (
	jobNone jobState = iota
	jobRunning
	jobEnded
)

// view is all that the decision depends on.
type view struct {
	// complete says that there is a backup to verify, possible that its SampleDB is there, whose archive it lies in.
	complete, possible bool
	// stopped says that the SampleDB is, or is about to be.
	stopped bool
	// former is the version of a backup of a former major version whose image is not known, "" for none.
	former string
	// asked names the request, done the one that the last verification was for.
	asked, done string

	job     jobState
	name    string
	started metav1.Time
	// result is what the Pod has left, nil where it left nothing; words is what is known besides.
	result *protocol.VerifyResult
	words  string
	// late is the time that it has had, where it was stopped for having taken longer; else 0.
	late time.Duration
}

// decision is what is done, and what the condition Verified says; without a reason nothing is asked for.
type decision struct {
	create, over bool
	reason       string
	message      string
}

// decide says what to do. It is pure.
func decide(v view) decision {
	switch {
	case !v.complete || v.asked == "" || v.asked == v.done:
		return decision{}
	case v.job == jobEnded && v.result == nil && v.late > 0:
		return decision{over: true, reason: v1.ReasonVerificationFailed, message: v.tooLong()}
	case v.job == jobEnded && v.result == nil:
		words := cmp.Or(v.words, "its Pod has ended without saying why: kubectl describe job "+v.name)
		return decision{over: true, reason: v1.ReasonVerificationFailed, message: words}
	case v.job == jobEnded && v.result.Error != "":
		return decision{over: true, reason: v1.ReasonVerificationFailed, message: v.result.Error}
	case v.job == jobEnded:
		return decision{over: true, reason: v1.ReasonVerified, message: fmt.Sprintf("restored up to %s in %s",
			v.result.LSN, duration(v.result.Recovery).Duration)}
	case v.job == jobRunning:
		return decision{reason: v1.ReasonVerifying, message: cmp.Or(v.words, "Job "+v.name+" restores and checks it")}
	case !v.possible:
		return decision{reason: v1.ReasonVerifying, message: "waits for the SampleDB that has its archive"}
	case v.stopped:
		return decision{reason: v1.ReasonVerifying, message: "waits until the SampleDB is started, which is stopped " +
			"(spec.stopped)"}
	case v.former != "":
		return decision{over: true, reason: v1.ReasonVerificationFailed, message: fmt.Sprintf("it is of PostgreSQL "+
			"%s, and spec.image is of the version that runs now: to check it, restore it into a new SampleDB "+
			"(kubectl toban restore NAME --into OTHER --backup BACKUP)", v.former)}
	}
	return decision{create: true, reason: v1.ReasonVerifying, message: "its Pod is being started"}
}

// tooLong says of a verification that it was stopped, and what was last known of it.
func (v view) tooLong() string {
	message := fmt.Sprintf("it took longer than %s: kubectl describe job %s tells what its Pod was "+
		"waiting for; if it needs more time, a DatabaseBackup with a longer spec.deadline gives that", v.late, v.name)
	if v.words != "" {
		message += "; last: " + v.words
	}
	return message
}

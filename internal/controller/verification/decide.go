package verification

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/written"
	"toban.dev/internal/desired"
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
	// asked names the request, done the one that the last verification was for.
	asked, done string

	job     jobState
	name    string
	started metav1.Time
	// result is what the Pod has left, nil where it left nothing; words is what is known besides.
	result *protocol.VerifyResult
	words  string
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
		return decision{reason: v1.ReasonVerifying, message: "waits for the SampleDB whose archive it lies in"}
	}
	return decision{create: true, reason: v1.ReasonVerifying, message: "its Pod is being started"}
}

// status is what the status of the backup should be.
func status(backup *v1.DatabaseBackup, v view, d decision, now time.Time) v1.DatabaseBackupStatus {
	out := *backup.Status.DeepCopy()
	verified := metav1.ConditionFalse
	if d.reason == v1.ReasonVerified {
		verified = metav1.ConditionTrue
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	if d.over {
		out.Verification = found(v, at)
	} else if meta.FindStatusCondition(out.Conditions, v1.ConditionVerified) != nil {
		// What was found before still holds.
		verified = meta.FindStatusCondition(out.Conditions, v1.ConditionVerified).Status
	}
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: v1.ConditionVerified, Status: verified, Reason: d.reason, Message: written.Message(d.message),
		ObservedGeneration: backup.Generation, LastTransitionTime: at,
	})
	return out
}

// found is what a verification that is over has found.
func found(v view, at metav1.Time) *v1.VerificationStatus {
	started := v.started.Rfc3339Copy()
	out := &v1.VerificationStatus{Asked: v.asked, StartedAt: &started, CompletedAt: &at}
	r := v.result
	if r == nil {
		return out
	}
	recovery := duration(r.Recovery)
	out.LSN, out.RecoveryTime, out.Objects = r.LSN, &recovery, r.Objects
	if r.Scrub != nil {
		out.Scrub = desired.ScrubStatus(*r.Scrub)
	}
	if !r.Commit.IsZero() {
		commit := metav1.NewTime(r.Commit).Rfc3339Copy()
		out.LastTransactionAt = &commit
	}
	for _, s := range r.Steps {
		out.Steps = append(out.Steps, v1.VerificationStep{Name: s.Name, Took: duration(s.Seconds), Skipped: s.Skipped})
	}
	for _, a := range r.Answers {
		out.Answers = append(out.Answers,
			v1.VerificationAnswer{Name: a.Name, Rows: int64(a.Rows), Got: a.Got, Problem: a.Problem})
	}
	return out
}

// duration is a time in seconds, for people.
func duration(seconds float64) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(seconds * float64(time.Second)).Round(10 * time.Millisecond)}
}

package verification

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/freshness"
)

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
		Type: v1.ConditionVerified, Status: verified, Reason: d.reason, Message: freshness.Message(d.message),
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

// report writes the status where it has changed, and then the event.
func (r *Reconciler) report(ctx context.Context, backup *v1.DatabaseBackup, v view, d decision) error {
	if d.reason == "" {
		return nil
	}
	now := status(backup, v, d, r.Now())
	if equality.Semantic.DeepEqual(backup.Status, now) {
		return nil
	}
	changed := backup.DeepCopy()
	changed.Status = now
	if there, err := freshness.Shared(ctx, r.Client, backup, changed); err != nil || !there {
		return err
	}
	if e := change(d); e.reason != "" {
		r.Events.Eventf(backup, nil, e.kind, e.reason, eventActionReported, "%s", e.message)
	}
	return nil
}

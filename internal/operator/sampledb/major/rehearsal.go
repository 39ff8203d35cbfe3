package major

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/major"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/upgrades"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// rehearsalTopic tries an upgrade on a copy.
type rehearsalTopic struct{ base }

// rehearsed is how far a rehearsal is, and what was found.
type rehearsed struct {
	major.RehearsalDecision
	status *v1.RehearsalStatus
	backup *v1.DatabaseBackup
}

// rehearsalID identifies what an upgrade is rehearsed with: what was found counts only for that.
func (s *rehearsalTopic) rehearsalID() string {
	method := v1.UpgradeMethod("")
	if spec := s.DB.Spec.Upgrade; spec != nil {
		method = spec.Method
	}
	return desired.Hash([]any{s.DB.Spec.Version, s.DB.Spec.Image, method})
}

// forgetRehearsal has an upgrade that is tried again rehearsed again, unless that has found nothing.
func (s *rehearsalTopic) forgetRehearsal() {
	u := s.Upgrade
	if u.Step == v1.UpgradeFailed && !s.all.TriedUpgrade() && u.Rehearsal != nil &&
		u.Rehearsal.Result != v1.RehearsalPassed {
		u.Rehearsal = nil
	}
}

// rehearseUpgrade is how far the rehearsal of an upgrade is that is checked and backed up.
func (s *rehearsalTopic) rehearseUpgrade(ctx context.Context, x upgrades.Upgrade) rehearsed {
	u := s.Upgrade
	view := major.RehearsalView{}
	if spec := s.DB.Spec.Upgrade; spec != nil {
		view.Always, view.Never = spec.Rehearse == v1.RehearseAlways, spec.Rehearse == v1.RehearseNever
	}
	if u.Sides != nil { // the second side is one, with all rows
		view.Always, view.Never = false, true
	}
	out := rehearsed{backup: s.BackupOf(u.Backup)}
	if out.backup == nil {
		out.backup = s.LastBackup()
	}
	if old := u.Rehearsal; old.Ended() && old.ID == s.rehearsalID() && old.Result != v1.RehearsalSkipped {
		view.Recorded, view.RecordedSays = major.Outcome(old.Result), old.Message
		if len(old.Problems) > 0 {
			view.RecordedSays = strings.Join(old.Problems, "; ")
		}
		out.RehearsalDecision, out.status = major.DecideRehearsal(view), old
		return out
	}
	s.rehearse(ctx, x, view, &out)
	out.status.ID = s.rehearsalID()
	return out
}

// rehearse sees how far a rehearsal is.
func (s *rehearsalTopic) rehearse(
	ctx context.Context, x upgrades.Upgrade, view major.RehearsalView, out *rehearsed,
) {
	view.Archive = s.Backup != nil
	if out.backup != nil {
		view.Backup = out.backup.Name
	}
	job := s.Job(x.RehearsalName(s.DB))
	run := jobs.Of(job, s.Seen.RehearsalPods)
	var result *protocol.RehearsalResult
	if job != nil {
		view.Job, view.Started, view.Ended = job.Name, true, run.Ended() && job.DeletionTimestamp == nil
		view.Idle = idle(s.Now, run)
		view.Found, result = rehearsalFound(run, view.Backup)
		view.Trouble, view.Says = s.rehearsalSays(ctx, run)
	}
	out.RehearsalDecision = major.DecideRehearsal(view)
	out.status = s.rehearsalStatus(x, out.RehearsalDecision, view, result)
}

// idle is for how long nothing has run or ended in the Pods of a Job.
func idle(now time.Time, run jobs.Run) time.Duration {
	last, pod := run.Job.CreationTimestamp.Time, run.Newest()
	switch {
	case run.Job.DeletionTimestamp != nil: // another follows
		return 0
	case pod == nil:
		return now.Sub(last)
	}
	last = pod.CreationTimestamp.Time
	for _, c := range containers(pod) {
		if c.State.Running != nil {
			return 0
		}
		if ended := c.State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	return now.Sub(last)
}

// containers are those of a Pod, in the order in which they run.
func containers(pod *corev1.Pod) (all []corev1.ContainerStatus) {
	return append(append(all, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
}

// rehearsalSays is what keeps the Pod of a rehearsal from running, and how far it is.
func (s *rehearsalTopic) rehearsalSays(ctx context.Context, run jobs.Run) (trouble, says string) {
	says = "Job " + run.Job.Name + " restores a copy"
	pod := run.Newest()
	if pod == nil || pods.Ended(pod) {
		return "", says
	}
	if t := pods.TroubleOf(pod); t != nil {
		return t.Message, says
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil {
			return "", "the copy is upgraded and looked through"
		}
	}
	if p := pods.Ask(ctx, s.Client, s.Pods, naming.IdentityRestore, pod); p != nil {
		says = "the copy: " + pods.Sentence(*p)
	}
	return "", says
}

// rehearsalFound is what the Pods of a rehearsal have left: the last that has left something counts.
func rehearsalFound(run jobs.Run, backup string) (
	found major.RehearsalFound, result *protocol.RehearsalResult,
) {
	for i := len(run.Pods) - 1; i >= 0; i-- {
		for _, c := range containers(&run.Pods[i]) {
			ended := c.State.Terminated
			if ended == nil || ended.ExitCode == 0 && c.Name != naming.ContainerUpgrade {
				continue // the next one goes on
			}
			found, result = rehearsalLeft(c.Name, ended, backup)
			return found, result
		}
	}
	if run.State() == jobs.Late {
		return major.RehearsalFound{Unknown: "it took too long: " + run.EndMessage()}, nil
	}
	return major.RehearsalFound{Unknown: run.EndMessage()}, nil
}

// rehearsalLeft is what a container has left that is the last to run. That the programs can't be brought along, or that
// objects of the backup are broken, would be so in the upgrade, or after it; what else ends these two is not known.
func rehearsalLeft(name string, ended *corev1.ContainerStateTerminated, backup string) (
	found major.RehearsalFound, result *protocol.RehearsalResult,
) {
	found.Unknown = cmp.Or(ended.Message,
		fmt.Sprintf("the container %s has ended: %s, exit code %d", name, ended.Reason, ended.ExitCode))
	switch name {
	case naming.ContainerCollect:
		if r := jobs.Result[protocol.UpgradeResult](ended.Message); r != nil && ended.ExitCode == naming.ExitRefused {
			found = major.RehearsalFound{Known: true, Problems: []string{r.Error}}
		}
	case naming.ContainerRestore:
		r := jobs.Result[protocol.VerifyResult](ended.Message)
		if r != nil && len(r.Objects) > 0 {
			found = major.RehearsalFound{Known: true, Problems: []string{
				fmt.Sprintf("the backup %s can't be restored: %s", backup, r.Error),
			}}
		} else if r != nil && r.Error != "" {
			found.Unknown = r.Error
		}
	case naming.ContainerUpgrade:
		r := jobs.Result[protocol.RehearsalResult](ended.Message)
		if r != nil && (r.Error != "" || ended.ExitCode == 0) {
			return major.RehearsalFound{Known: r.Error == "", Problems: r.Problems, Unknown: r.Error}, r
		}
	}
	return found, nil
}

// rehearsalStatus is what the status says of a rehearsal.
func (s *rehearsalTopic) rehearsalStatus(
	x upgrades.Upgrade, d major.RehearsalDecision, view major.RehearsalView, result *protocol.RehearsalResult,
) *v1.RehearsalStatus {
	out := &v1.RehearsalStatus{
		Result: string(d.Outcome), Message: freshness.Message(d.Says), Backup: view.Backup,
		From: int32(x.From), To: int32(x.To), Image: x.Image, //nolint:gosec // major versions
	}
	if d.Outcome == major.OutcomeRunning {
		return out
	}
	out.Time = s.Stamp()
	if d.Outcome != major.OutcomePassed && d.Outcome != major.OutcomeProblems {
		return out
	}
	out.Problems = view.Found.Problems
	if result != nil {
		measured(out, *result)
	}
	without := time.Duration(0)
	if out.WithoutWrites != nil {
		without = out.WithoutWrites.Duration
	}
	out.Message = freshness.Message(major.RehearsalSentence(s.Now, without, out.Problems))
	return out
}

// measured puts into the status what a rehearsal has measured.
func measured(out *v1.RehearsalStatus, r protocol.RehearsalResult) {
	out.Bytes, out.Method = r.Bytes, r.Method
	took := func(seconds float64) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)}
	}
	if r.WithoutWrites > 0 {
		without := took(r.WithoutWrites)
		out.WithoutWrites = &without
	}
	if !r.Commit.IsZero() {
		commit := metav1.NewTime(r.Commit).Rfc3339Copy()
		out.LastTransactionAt = &commit
	}
	for _, step := range r.Steps {
		out.Steps = append(out.Steps,
			v1.VerificationStep{Name: step.Name, Took: took(step.Seconds), Skipped: step.Skipped})
	}
}

// startRehearsal makes the Job of a rehearsal, with what its Pod mounts.
func (s *rehearsalTopic) startRehearsal(ctx context.Context, x upgrades.Upgrade, b *v1.DatabaseBackup) error {
	if b == nil || s.Job(x.RehearsalName(s.DB)) != nil {
		return nil
	}
	for i := range s.Seen.RehearsalPods {
		if !pods.Ended(&s.Seen.RehearsalPods[i]) {
			return nil // of one before, which ends
		}
	}
	config, err := upgrades.ConfigMap(s.DB, upgrades.Settings(s.DB, s.Config, x))
	if err != nil {
		return err
	}
	var job *batchv1.Job
	if job, err = upgrades.RehearsalJob(s.DB, s.Settings, x, b); err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if err := s.Apply(ctx, s.DB, config); err != nil {
		return err
	}
	return s.Apply(ctx, s.DB, job)
}

// tellRehearsal tells what a rehearsal has found, once.
func (s *rehearsalTopic) tellRehearsal(before, now *v1.RehearsalStatus) {
	if before.Ended() || !now.Ended() || now.Result == v1.RehearsalSkipped {
		return
	}
	kind := corev1.EventTypeNormal
	if now.Result != v1.RehearsalPassed {
		kind = corev1.EventTypeWarning
	}
	s.QueuedEvents = append(s.QueuedEvents, world.Event{Kind: kind, Reason: world.EventRehearsed,
		Message: fmt.Sprintf("from PostgreSQL %d to %d: %s",
			now.From, now.To, now.Message)})
}

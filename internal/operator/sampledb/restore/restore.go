package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// restoreTopic brings data back: into a new SampleDB, or in place.
type restoreTopic struct{ base }

const (
	// restoreRetry is how long after its end a failed restore is tried once more, in case what it needed outside the
	// spec, such as a Secret, is there by then. It doubles each time, up to restoreRetryMost.
	restoreRetry     = 5 * time.Minute
	restoreRetryMost = 12 * time.Hour
	// waitRestore is how often it is looked how far a restore is.
	waitRestore = 2 * time.Second
)

// ApplyRestore brings the data of spec.restoreFrom into the first instance's volume. Until it is there, no
// instance is: what it finds out is a problem that nothing goes on after, and the condition Restored.
func (s *restoreTopic) ApplyRestore(ctx context.Context) error {
	s.Restore, s.RestoreSeen = s.DB.Status.Restore.DeepCopy(), true
	if s.HoldsWork() && !s.RestoreBegun() {
		return s.holdRestore()
	}
	if err := s.ofOtherSnapshot(ctx); err != nil {
		return s.notRestored(err)
	}
	if s.Config.SystemIdentifier != "" &&
		(s.DB.Spec.Restore != nil || s.InPlace() || s.Loss.Reason == world.LossRestores) {
		return s.applyInPlace(ctx)
	}
	if s.Restore != nil && s.Restore.CompletedAt != nil {
		s.Restored = restoredTo(s.Restore)
		return nil
	}
	if s.Config.SystemIdentifier != "" { // there is a database already
		if s.Restore != nil { // which an operator that ended before it could note it has seen restored
			s.addRestoredEvent(restoreResult(jobs.Run{Pods: jobs.OldestFirst(s.Seen.RestorePods)}))
		}
		return nil
	}
	if s.DB.Spec.RestoreFrom == nil {
		return s.giveUpRestore(ctx)
	}
	return s.notRestored(s.keepRestoring(ctx, desired.FirstRestore(s.DB)))
}

// notRestored has the condition Restored say what a problem is.
func (s *restoreTopic) notRestored(err error) error {
	var stop *world.Problem
	if errors.As(err, &stop) {
		s.Restored = world.No(stop.Reason, stop.Message)
	}
	return err
}

// holdRestore has what is to be restored wait for the start.
func (s *restoreTopic) holdRestore() error {
	wanted := s.RestoreWanted()
	switch {
	case wanted:
		s.Restored = world.No(v1.ReasonStopped, "it begins when the database is started: "+s.Stop.Message)
	case s.Restore != nil && s.Restore.CompletedAt != nil:
		s.Restored = restoredTo(s.Restore)
	}
	return nil
}

// giveUpRestore ends a restore that is not wanted any more, before anybody else uses its volume.
func (s *restoreTopic) giveUpRestore(ctx context.Context) error {
	if s.Restore == nil {
		return nil
	}
	if _, err := s.KeepJob(ctx, naming.ComponentRestore, ""); err != nil {
		return err
	}
	if pod := s.Restoring(); pod != nil {
		return &world.Problem{
			Reason:  v1.ReasonCreating,
			Message: fmt.Sprintf("waits for Pod %s of a restore to end, which is not wanted any more", pod.Name),
			Wait:    world.WaitGone,
		}
	}
	s.Restore = nil
	return nil
}

// keepRestoring makes the Job, and says how far it is.
func (s *restoreTopic) keepRestoring(ctx context.Context, x desired.Restore) error {
	job, err := s.KeepJob(ctx, naming.ComponentRestore, x.JobName(s.DB))
	if err != nil {
		return err
	}
	if job == nil {
		return s.startRestore(ctx, x)
	}
	if s.Restore == nil {
		s.Restore = &v1.RestoreStatus{}
	}
	run := jobs.Of(job, s.Seen.RestorePods)
	if run.State() == jobs.Complete {
		s.addRestoredEvent(restoreResult(run))
		return nil
	}
	words := cmp.Or(restoreResult(run).Error, run.Last(naming.ContainerRestore))
	if failed := run.Failure(); failed != nil {
		return s.restoreFailed(ctx, job, failed.LastTransitionTime, words)
	}
	return &world.Problem{Reason: v1.ReasonRestoring, Message: s.restoreProgress(ctx, words), Wait: waitRestore}
}

// restoreFailed says why a restore has failed, and when it is tried again, or does so.
func (s *restoreTopic) restoreFailed(
	ctx context.Context, job *batchv1.Job, at metav1.Time, words string,
) error {
	if s.Restore.FailedAt == nil || s.Restore.FailedAt.Before(&at) {
		s.Restore.FailedAt = &at
		s.Restore.Failures++
	}
	again := at.Add(restorePause(s.Restore.Failures))
	if s.Now.After(again) {
		return errors.Join(s.Jobs().Remove(ctx, job),
			&world.Problem{Reason: v1.ReasonRestoring, Message: "it is tried again; it has failed: " + words,
				Wait: waitRestore})
	}
	words = cmp.Or(words,
		fmt.Sprintf("Job %s has failed without saying why: kubectl describe job %s", job.Name, job.Name))
	if s.Restore.Failures > 1 { // the first may be mended, or taken back, before minutes have passed
		words += fmt.Sprintf(" (failures: %d; tried again at %s, or at once: kubectl delete job %s)",
			s.Restore.Failures, again.UTC().Format(time.RFC3339), job.Name)
	}
	return &world.Problem{Reason: v1.ReasonRestoreFailed, Message: words, Wait: world.WaitUser}
}

// restorePause is how long after so many failures a restore is tried again.
func restorePause(failures int32) time.Duration {
	pause := restoreRetry
	for range failures - 1 {
		pause = min(2*pause, restoreRetryMost)
	}
	return pause
}

// startRestore makes what the Pod of a restore needs, and its Job.
func (s *restoreTopic) startRestore(ctx context.Context, x desired.Restore) error {
	if pod := s.Restoring(); pod != nil {
		return &world.Problem{
			Reason: v1.ReasonRestoring, Message: fmt.Sprintf("waits for Pod %s of a former restore to end", pod.Name),
			Wait: world.WaitGone,
		}
	}
	source, err := s.restoreSource(ctx, x)
	if err != nil {
		return err
	}
	if err := s.madeOfSource(x, source); err != nil {
		return err
	}
	settings, err := desired.RestoreSettings(s.DB, s.Config, x, source)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	config, err := desired.RestoreConfigMap(s.DB, settings)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{
		config, desired.RestorePolicy(s.DB, s.Settings), desired.RestoreJob(s.DB, s.Settings, x, source),
	} {
		if err := s.Apply(ctx, s.DB, object); err != nil {
			return err
		}
	}
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	if s.Restore == nil {
		s.Restore = &v1.RestoreStatus{}
	}
	if name := x.JobName(s.DB); s.Restore.Job != name {
		s.Restore.Job, s.Restore.Failures, s.Restore.FailedAt = name, 0, nil
	}
	s.Restore.Archive, s.Restore.Backup, s.Restore.StartedAt = source.Archive.Path, source.Backup, &at
	s.AddEvent(world.EventRestoring, "from the archive "+source.Archive.Path)
	return &world.Problem{Reason: v1.ReasonRestoring, Message: "its Pod is being started", Wait: waitRestore}
}

// restoreProgress asks the Pod how far it is, in a sentence and in the status. What the Pods
// before have said goes with it.
func (s *restoreTopic) restoreProgress(ctx context.Context, words string) string {
	sentence := "its Pod is being started"
	pod := s.Restoring()
	if pod != nil {
		if t := world.PodTrouble(pod); t != nil {
			sentence = t.Message
		}
	}
	if pod != nil && world.Reachable(pod) {
		p := pods.Ask(ctx, s.Client, s.Pods, naming.IdentityRestore, pod)
		if p == nil {
			return cmp.Or(s.restoreSaid(), sentence) // not known is not changed
		}
		s.Restore.Backup = cmp.Or(p.Backup, s.Restore.Backup)
		s.Restore.Progress = &v1.BackupProgress{Bytes: p.Done, Total: p.Total, Rate: p.Rate, Percent: pods.Percent(*p)}
		sentence = p.Step
	}
	if words != "" {
		sentence += "; the Pod before has failed: " + words
	}
	return sentence
}

// restoreSaid is what the condition Restored says, where it says that the restore goes on.
func (s *restoreTopic) restoreSaid() string {
	if c := world.Condition(s.DB.Status, v1.ConditionRestored); c != nil && c.Reason == v1.ReasonRestoring {
		return c.Message
	}
	return ""
}

// addRestoredEvent takes what the Pod has left.
func (s *restoreTopic) addRestoredEvent(result protocol.RestoreResult) {
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	s.Restore.LSN, s.Restore.Progress = result.LSN, nil
	s.Restore.Failures, s.Restore.FailedAt = 0, nil
	s.Restore.Backup = cmp.Or(result.Backup, s.Restore.Backup)
	s.Restore.Branch = int64(min(result.Branch, math.MaxInt64))
	if !result.Commit.IsZero() {
		commit := metav1.NewTime(result.Commit).Rfc3339Copy()
		s.Restore.LastTransactionAt = &commit
	}
	if s.Restore.ID != "" {
		s.Restore.PreparedAt = &at
		s.Restored = world.No(v1.ReasonRestoring, "the data is ready to be put in place")
		return
	}
	s.Restore.CompletedAt = &at
	s.Restored = restoredTo(s.Restore)
}

// restoredTo is the condition Restored once the data is there.
func restoredTo(r *v1.RestoreStatus) world.Verdict {
	switch {
	case r.LSN == "":
		return world.Yes(v1.ReasonRestored, "the volume already had a database, which was kept")
	case r.Cause == v1.CauseSurvivor:
		return survived(r)
	case r.Cause != "":
		return begunAgain(r)
	}
	return world.Yes(v1.ReasonRestored, broughtBack(r))
}

// broughtBack says what a restore has brought back.
func broughtBack(r *v1.RestoreStatus) string {
	words := fmt.Sprintf("backup %s, and the WAL up to %s", r.Backup, r.LSN)
	if r.LastTransactionAt == nil {
		return words
	}
	return words + "; the last transaction is of " + r.LastTransactionAt.UTC().Format(time.RFC3339)
}

// restoreResult reads it, empty where it is none of ours.
func restoreResult(run jobs.Run) protocol.RestoreResult {
	if out := jobs.Result[protocol.RestoreResult](run.Last(naming.ContainerRestore)); out != nil {
		return *out
	}
	return protocol.RestoreResult{}
}

// SetRestored sets what there is only with spec.restoreFrom or spec.restore, where the reconcile got there.
func (s *restoreTopic) SetRestored(out *v1.SampleDBStatus) {
	if s.RestoreSeen {
		out.Restore = s.Restore
	}
	switch {
	case s.DB.Spec.RestoreFrom == nil && s.DB.Spec.Restore == nil && !s.InPlace() && !s.hasBegunAgain():
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionRestored)
	case s.Restored.Reason != "":
		meta.SetStatusCondition(&out.Conditions, s.Condition(v1.ConditionRestored, s.Restored))
	}
}

package sampledb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// restoreTopic brings data back: into a new SampleDB, or in place.
type restoreTopic struct{ restoreBase }

const (
	// restoreRetry is how long after its end a failed restore is tried once more, in case what it needed outside the
	// spec, such as a Secret, is there by then. It doubles each time, up to restoreRetryMost.
	restoreRetry     = 5 * time.Minute
	restoreRetryMost = 12 * time.Hour
	// waitRestore is how often it is looked how far a restore is.
	waitRestore = 2 * time.Second
)

// applyRestore brings the data of spec.restoreFrom into the first instance's volume. Until it is there, no
// instance is: what it finds out is a problem that nothing goes on after, and the condition Restored.
func (s *restoreTopic) applyRestore(ctx context.Context) error {
	s.restore, s.restoreSeen = s.db.Status.Restore.DeepCopy(), true
	if s.holdsWork() && !s.restoreBegun() {
		return s.holdRestore()
	}
	if err := s.ofOtherSnapshot(ctx); err != nil {
		return s.notRestored(err)
	}
	if s.config.SystemIdentifier != "" &&
		(s.db.Spec.Restore != nil || s.inPlace() || s.loss.reason == lossRestores) {
		return s.applyInPlace(ctx)
	}
	if s.restore != nil && s.restore.CompletedAt != nil {
		s.restored = restoredTo(s.restore)
		return nil
	}
	if s.config.SystemIdentifier != "" { // there is a database already
		if s.restore != nil { // which an operator that ended before it could note it has seen restored
			s.addRestoredEvent(restoreResult(jobs.Run{Pods: jobs.OldestFirst(s.seen.restorePods)}))
		}
		return nil
	}
	if s.db.Spec.RestoreFrom == nil {
		return s.giveUpRestore(ctx)
	}
	return s.notRestored(s.keepRestoring(ctx, desired.FirstRestore(s.db)))
}

// notRestored has the condition Restored say what a problem is.
func (s *restoreTopic) notRestored(err error) error {
	var stop *problem
	if errors.As(err, &stop) {
		s.restored = no(stop.reason, stop.message)
	}
	return err
}

// holdRestore has what is to be restored wait for the start.
func (s *restoreTopic) holdRestore() error {
	wanted := s.restoreWanted()
	switch {
	case wanted:
		s.restored = no(v1.ReasonStopped, "it begins when the database is started: "+s.stop.Message)
	case s.restore != nil && s.restore.CompletedAt != nil:
		s.restored = restoredTo(s.restore)
	}
	return nil
}

// giveUpRestore ends a restore that is not wanted any more, before anybody else uses its volume.
func (s *restoreTopic) giveUpRestore(ctx context.Context) error {
	if s.restore == nil {
		return nil
	}
	if _, err := s.keepJob(ctx, naming.ComponentRestore, ""); err != nil {
		return err
	}
	if pod := s.restoring(); pod != nil {
		return &problem{
			v1.ReasonCreating,
			fmt.Sprintf("waits for Pod %s of a restore to end, which is not wanted any more", pod.Name), waitGone,
		}
	}
	s.restore = nil
	return nil
}

// keepRestoring makes the Job, and says how far it is.
func (s *restoreTopic) keepRestoring(ctx context.Context, x desired.Restore) error {
	job, err := s.keepJob(ctx, naming.ComponentRestore, x.JobName(s.db))
	if err != nil {
		return err
	}
	if job == nil {
		return s.startRestore(ctx, x)
	}
	if s.restore == nil {
		s.restore = &v1.RestoreStatus{}
	}
	run := jobs.Of(job, s.seen.restorePods)
	if run.State() == jobs.Complete {
		s.addRestoredEvent(restoreResult(run))
		return nil
	}
	words := cmp.Or(restoreResult(run).Error, run.Last(naming.ContainerRestore))
	if failed := run.Failure(); failed != nil {
		return s.restoreFailed(ctx, job, failed.LastTransitionTime, words)
	}
	return &problem{v1.ReasonRestoring, s.restoreProgress(ctx, words), waitRestore}
}

// restoreFailed says why a restore has failed, and when it is tried again, or does so.
func (s *restoreTopic) restoreFailed(
	ctx context.Context, job *batchv1.Job, at metav1.Time, words string,
) error {
	if s.restore.FailedAt == nil || s.restore.FailedAt.Before(&at) {
		s.restore.FailedAt = &at
		s.restore.Failures++
	}
	again := at.Add(restorePause(s.restore.Failures))
	if s.now.After(again) {
		return errors.Join(s.jobs().Remove(ctx, job),
			&problem{v1.ReasonRestoring, "it is tried again; it has failed: " + words, waitRestore})
	}
	words = cmp.Or(words,
		fmt.Sprintf("Job %s has failed without saying why: kubectl describe job %s", job.Name, job.Name))
	if s.restore.Failures > 1 { // the first may be mended, or taken back, before minutes have passed
		words += fmt.Sprintf(" (failures: %d; tried again at %s, or at once: kubectl delete job %s)",
			s.restore.Failures, again.UTC().Format(time.RFC3339), job.Name)
	}
	return &problem{v1.ReasonRestoreFailed, words, waitUser}
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
	if pod := s.restoring(); pod != nil {
		return &problem{
			v1.ReasonRestoring, fmt.Sprintf("waits for Pod %s of a former restore to end", pod.Name), waitGone,
		}
	}
	source, err := s.restoreSource(ctx, x)
	if err != nil {
		return err
	}
	if err := s.madeOfSource(x, source); err != nil {
		return err
	}
	settings, err := desired.RestoreSettings(s.db, s.config, x, source)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	config, err := desired.RestoreConfigMap(s.db, settings)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{
		config, desired.RestorePolicy(s.db, s.Settings), desired.RestoreJob(s.db, s.Settings, x, source),
	} {
		if err := s.apply(ctx, s.db, object); err != nil {
			return err
		}
	}
	at := metav1.NewTime(s.now).Rfc3339Copy()
	if s.restore == nil {
		s.restore = &v1.RestoreStatus{}
	}
	if name := x.JobName(s.db); s.restore.Job != name {
		s.restore.Job, s.restore.Failures, s.restore.FailedAt = name, 0, nil
	}
	s.restore.Archive, s.restore.Backup, s.restore.StartedAt = source.Archive.Path, source.Backup, &at
	s.addEvent(eventRestoring, "from the archive "+source.Archive.Path)
	return &problem{v1.ReasonRestoring, "its Pod is being started", waitRestore}
}

// restoreProgress asks the Pod how far it is, in a sentence and in the status. What the Pods
// before have said goes with it.
func (s *restoreTopic) restoreProgress(ctx context.Context, words string) string {
	sentence := "its Pod is being started"
	pod := s.restoring()
	if pod != nil {
		if t := podTrouble(pod); t != nil {
			sentence = t.message
		}
	}
	if pod != nil && reachable(pod) {
		p := pods.Ask(ctx, s.Client, s.Pods, naming.IdentityRestore, pod)
		if p == nil {
			return cmp.Or(s.restoreSaid(), sentence) // not known is not changed
		}
		s.restore.Backup = cmp.Or(p.Backup, s.restore.Backup)
		s.restore.Progress = &v1.BackupProgress{Bytes: p.Done, Total: p.Total, Rate: p.Rate, Percent: pods.Percent(*p)}
		sentence = p.Step
	}
	if words != "" {
		sentence += "; the Pod before has failed: " + words
	}
	return sentence
}

// restoreSaid is what the condition Restored says, where it says that the restore goes on.
func (s *restoreTopic) restoreSaid() string {
	if c := condition(s.db.Status, v1.ConditionRestored); c != nil && c.Reason == v1.ReasonRestoring {
		return c.Message
	}
	return ""
}

// addRestoredEvent takes what the Pod has left.
func (s *restoreTopic) addRestoredEvent(result protocol.RestoreResult) {
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.restore.LSN, s.restore.Progress = result.LSN, nil
	s.restore.Failures, s.restore.FailedAt = 0, nil
	s.restore.Backup = cmp.Or(result.Backup, s.restore.Backup)
	s.restore.Branch = int64(min(result.Branch, math.MaxInt64))
	if !result.Commit.IsZero() {
		commit := metav1.NewTime(result.Commit).Rfc3339Copy()
		s.restore.LastTransactionAt = &commit
	}
	if s.restore.ID != "" {
		s.restore.PreparedAt = &at
		s.restored = no(v1.ReasonRestoring, "the data is ready to be put in place")
		return
	}
	s.restore.CompletedAt = &at
	s.restored = restoredTo(s.restore)
}

// restoredTo is the condition Restored once the data is there.
func restoredTo(r *v1.RestoreStatus) verdict {
	switch {
	case r.LSN == "":
		return yes(v1.ReasonRestored, "the volume already had a database, which was kept")
	case r.Cause == v1.CauseSurvivor:
		return survived(r)
	case r.Cause != "":
		return begunAgain(r)
	}
	return yes(v1.ReasonRestored, broughtBack(r))
}

// broughtBack says what a restore has brought back.
func broughtBack(r *v1.RestoreStatus) string {
	words := fmt.Sprintf("backup %s, and the WAL up to %s", r.Backup, r.LSN)
	if r.LastTransactionAt == nil {
		return words
	}
	return words + "; the last transaction is of " + r.LastTransactionAt.UTC().Format(time.RFC3339)
}

// restoring is a Pod of a restore that has not ended, nil where there is none.
func (s *restoreFacts) restoring() *corev1.Pod {
	for i := range s.seen.restorePods {
		pod := &s.seen.restorePods[i]
		if !pods.Ended(pod) {
			return pod
		}
	}
	return nil
}

// restoreResult reads it, empty where it is none of ours.
func restoreResult(run jobs.Run) protocol.RestoreResult {
	if out := jobs.Result[protocol.RestoreResult](run.Last(naming.ContainerRestore)); out != nil {
		return *out
	}
	return protocol.RestoreResult{}
}

package archive

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
)

// startPatience is how long a backup waits for a Job of retention that does not begin: a Pod that has a node, and its
// image, starts within it. Nothing is lost: retention is due again when the backup has ended.
const startPatience = 3 * time.Minute

// makeWay removes the Job of retention where it keeps a backup waiting and does not begin itself. The backup begins
// when the Job has gone, which is after its Pods: a Pod that only waits may start at any moment.
func (s *archiveTopic) makeWay(ctx context.Context) error {
	job := s.retentionJob()
	if job == nil {
		return nil
	}
	run := jobs.Of(job, s.Seen.BackupPods)
	s.RetentionNext = looksAgain(run, s.Now)
	if !makesWay(run, s.waitingBackup() != "", s.Now) {
		return nil
	}
	s.retentionWaits = fmt.Sprintf("Job %s has made way for the backup %s, and is made again after it: it had not "+
		"begun in %s: %s", job.Name, s.waitingBackup(), startPatience, notBegun(run))
	return jobs.Runner{Client: s.Client, Reader: s.Reader}.RemoveAfterPods(ctx, job)
}

// makesWay says that a Job of retention is removed for a backup that waits for it.
func makesWay(run jobs.Run, backupWaits bool, now time.Time) bool {
	return backupWaits && run.State() == jobs.Running && !run.Begun() &&
		!now.Before(run.Job.CreationTimestamp.Add(startPatience))
}

// looksAgain is when something is to be said or done about a Job that has not begun, zero for never.
func looksAgain(run jobs.Run, now time.Time) time.Time {
	if run.State() != jobs.Running || run.Begun() {
		return time.Time{}
	}
	for _, patience := range []time.Duration{startPatience, retentionPatience} {
		if at := run.Job.CreationTimestamp.Add(patience); now.Before(at) {
			return at
		}
	}
	return time.Time{}
}

// waitingBackup names a backup that would begin if nothing else were at work in the archive, "" for none. One for which
// the archive has no room does not wait in this sense: it needs retention first.
func (s *archiveTopic) waitingBackup() string {
	for _, all := range [][]v1.DatabaseBackup{s.Seen.Backups, s.Seen.Snapshots} {
		for i := range all {
			if b := &all[i]; world.AwaitsOther(b) {
				return b.Name
			}
		}
	}
	return ""
}

// backupFirst says that a backup waits for which the last Job of retention may have made way.
func (s *archiveTopic) backupFirst() bool { return s.failing() && s.waitingBackup() != "" }

// failing says that retention had failed when the status was written last.
func (s *archiveTopic) failing() bool {
	was := meta.FindStatusCondition(s.DB.Status.Conditions, v1.ConditionRetentionApplied)
	return was != nil && was.Reason == v1.ReasonRetentionFailing
}

// notBegun is why a Job that runs has not begun, as far as that is known.
func notBegun(run jobs.Run) string {
	pod := run.Newest()
	if pod == nil {
		return "it has no Pod; kubectl describe job " + run.Job.Name + " says why"
	}
	if t := pods.TroubleOf(pod); t != nil {
		return t.Message
	}
	if gates := pods.Gates(pod); gates != "" {
		return gates
	}
	return pod.Name + " does not start; kubectl describe pod " + pod.Name + " says why"
}

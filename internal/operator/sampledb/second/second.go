// Package second has the archive of a SampleDB copied into a second store.
package second

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// Topics are the topics about the second store.
type Topics struct {
	*world.Act
	*secondTopic
}

// New are the topics of one reconcile.
func New(a *world.Act) *Topics { return &Topics{a, &secondTopic{Act: a}} }

// secondTopic has the archive copied into the second store.
type secondTopic struct {
	*world.Act
	// copied is what the Pod of the last Job that copies into the second store has said, nil where there is none, or
	// none yet.
	copied *protocol.CopyResult
	// waits is what keeps the Pod of the Job from running, as the end of a sentence, "" where nothing does.
	waits string
}

// copyBehind is how old what the copy has may be: several runs of a Job, each ten minutes after the one before.
const copyBehind = time.Hour

// ApplyCopy has a Job copy the archive into the second store. It goes ten minutes after its end, and is made again. One
// of a former spec is removed. A database that writes does not wait for any of this.
func (s *secondTopic) ApplyCopy(ctx context.Context) error {
	want := ""
	if s.Backup != nil && s.Backup.SecondStore != nil {
		want = desired.CopyJobName(s.DB)
	}
	runner := jobs.Runner{Client: s.Client, Reader: s.Reader}
	job, ending, err := runner.Keep(ctx, s.copyJobs(), s.DB, want)
	switch {
	case err != nil:
		return err
	case job != nil:
		run := jobs.Of(job, s.Seen.CopyPods)
		s.copied = copyResult(run)
		if t := pods.TroubleOf(run.Newest()); t != nil {
			s.waits = fmt.Sprintf("; Job %s can't begin: %s", job.Name, t.Message)
		}
		return nil
	case want == "" || ending || !s.hasArchived():
		return nil
	}
	_, err = s.Copies.Take(ctx, client.ObjectKeyFromObject(s.DB), want, s.Now, func() error {
		return s.Apply(ctx, s.DB, desired.AskedAt(desired.CopyJob(s.DB, s.Settings), s.Now))
	})
	return err
}

// copyJobs are the Jobs that copy the archive.
func (s *secondTopic) copyJobs() []batchv1.Job {
	return slices.DeleteFunc(slices.Clone(s.Seen.Jobs), func(j batchv1.Job) bool {
		return j.Labels[naming.LabelComponent] != naming.ComponentSecond
	})
}

// hasArchived says that there is something to copy.
func (s *secondTopic) hasArchived() bool {
	b := s.DB.Status.Backup
	return b != nil && b.ArchivedLSN != "" && !s.ArchiveLeft()
}

// copyResult is what the Pod of a Job has left, nil while it runs. One that has left nothing was killed.
func copyResult(run jobs.Run) *protocol.CopyResult {
	if !run.Ended() {
		return nil
	}
	if said := jobs.Result[protocol.CopyResult](run.Last(naming.ContainerSecond)); said != nil {
		return said
	}
	return &protocol.CopyResult{Error: fmt.Sprintf("Job %s has ended without a word (%s): see kubectl logs job/%s",
		run.Job.Name, run.EndMessage(), run.Job.Name)}
}

// CopyStatus is what the status says of the copy, nil where there is no second store: what is on record of this one,
// and what the last Job has said.
func (s *secondTopic) CopyStatus() *v1.CopyStatus {
	place := desired.CopyPlace(s.DB, s.ArchivePath())
	if place == "" {
		return nil
	}
	out := &v1.CopyStatus{Place: place}
	if b := s.DB.Status.Backup; b != nil && b.Copy != nil && b.Copy.Place == place {
		out = b.Copy.DeepCopy()
	}
	said := s.copied
	if said == nil {
		return out
	}
	if out.Problem = said.Error; out.Problem == "" {
		out.Problem = said.Problem
		out.Alone = s.lost(said.Lost)
	}
	if !said.Until.IsZero() {
		at := metav1.NewTime(said.Until)
		out.Until, out.LSN = &at, said.LSN
	}
	if !said.CheckedAt.IsZero() {
		at := metav1.NewTime(said.CheckedAt)
		out.CheckedAt, out.Objects, out.Bytes = &at, int64(said.Objects), said.Bytes
	}
	return out
}

// lost are backups that the archive has lost, without those that retention has removed by what is on record.
func (s *secondTopic) lost(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return slices.ContainsFunc(s.Seen.Backups, func(b v1.DatabaseBackup) bool {
			c := meta.FindStatusCondition(b.Status.Conditions, v1.ConditionComplete)
			return b.Status.ID == id && c != nil && c.Reason == v1.ReasonRemoved
		})
	})
}

// IsCopied is true when the copy has all that the archive had a while ago. It has no reason where there is no second
// store.
func (s *secondTopic) IsCopied(now *v1.BackupStatus) world.Verdict {
	if now == nil || now.Copy == nil {
		return world.Verdict{}
	}
	c := now.Copy
	switch {
	case c.Problem != "" && !s.Stop.Down():
		return world.No(v1.ReasonCopyFailing, c.Problem)
	case s.Stop.Down():
		return world.No(v1.ReasonCopyStopped,
			fmt.Sprintf("the database is stopped: the copy in %s goes on when it starts",
				c.Place))
	case len(c.Alone) > 0:
		return world.No(v1.ReasonCopyAlone,
			fmt.Sprintf("the archive has lost backups that are to be kept, and that only "+
				"the copy in %s has: %s", c.Place, strings.Join(c.Alone, ", ")))
	case c.Until == nil:
		return world.No(v1.ReasonCopyStarting,
			"the first copy to "+c.Place+" is under way, or there is no backup yet"+s.waits)
	case s.Now.Sub(c.Until.Time) > copyBehind:
		return world.No(v1.ReasonCopyBehind,
			fmt.Sprintf("the copy in %s has what the archive had at %s, and not yet what "+
				"it had an hour ago%s", c.Place, c.Until.UTC().Format(time.RFC3339), s.waits))
	}
	return world.Yes(v1.ReasonCopied, "the archive is copied to "+c.Place+" every ten minutes")
}

// CopyChanges is the event that tells of another state of the copy.
func CopyChanges(old, now v1.SampleDBStatus) []world.Event {
	c := world.Turned(old, now, v1.ConditionCopied)
	switch {
	case c == nil || c.Reason == v1.ReasonCopyStarting:
	case c.Status == metav1.ConditionTrue:
		return []world.Event{world.Normal(world.EventCopied, c.Message)}
	default:
		return []world.Event{world.Warning(world.EventNotCopied, c.Reason+": "+c.Message)}
	}
	return nil
}

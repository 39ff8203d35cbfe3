package myapp

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	toban "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/myapp"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
)

// buildView is what the decision about an update depends on, from what was seen.
func (s *scope) buildView() view {
	return view{
		image:    s.app.Spec.Image,
		needed:   s.needed(),
		first:    s.deployed == nil && s.seen.deployment == nil,
		missing:  s.missing(s.app.Spec),
		database: s.seen.database,
		jobs:     s.jobViews(),
		pod:      s.lingering(),
		backup:   s.backupView(),
	}
}

// needed says that a migration comes before the spec may be rolled out.
func (s *scope) needed() bool {
	return s.app.Spec.Migration != nil &&
		(s.deployed == nil || myapp.Version(s.deployed.Spec) != myapp.Version(s.app.Spec))
}

func (s *scope) jobViews() []jobView {
	var out []jobView
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		v := jobView{name: job.Name, created: job.CreationTimestamp.Time}
		v.attempt = s.job != nil && job.Name == s.job.Name
		v.wanted = v.attempt || job.Annotations[naming.AnnotationMigration] == myapp.Version(s.app.Spec) &&
			job.Annotations[naming.AnnotationRevision] == strconv.FormatInt(s.revision(), 10)
		switch run := jobs.Of(job, s.seen.migrationPods); run.State() {
		case jobs.Complete:
			v.state = jobComplete
		case jobs.Failed, jobs.Late:
			v.state, v.message = jobFailed, whyFailed(run)
		case jobs.None, jobs.Running, jobs.Ending:
			v.state, v.message = jobRunning, howFar(run)
		}
		out = append(out, v)
	}
	return out
}

// howFar says how far a Job is that has not ended.
func howFar(run jobs.Run) string {
	job, pod := run.Job, run.Newest()
	switch {
	case job.DeletionTimestamp != nil:
		return fmt.Sprintf("Job %s is being stopped", job.Name)
	case pod == nil:
		return fmt.Sprintf("Job %s is being started", job.Name)
	}
	if t := pods.TroubleOf(pod); t != nil {
		return fmt.Sprintf("Job %s can't begin: %s", job.Name, t.Message)
	}
	return fmt.Sprintf("Job %s runs", job.Name)
}

// whyFailed says why a Job has failed, with the last words of its Pod.
func whyFailed(run jobs.Run) string {
	job, pod, condition := run.Job, run.Newest(), run.Failure()
	switch {
	case run.State() == jobs.Late, pod != nil && pod.Status.Reason == batchv1.JobReasonDeadlineExceeded:
		sentence := fmt.Sprintf("Job %s took longer than migration.deadline and was stopped", job.Name)
		if pod == nil {
			return sentence
		}
		return sentence + lastWords(pod)
	case pod == nil:
		return fmt.Sprintf("the Pod of Job %s was removed before it had ended (%s)",
			job.Name, cmp.Or(condition.Message, condition.Reason))
	}
	return fmt.Sprintf("Job %s has failed%s", job.Name, lastWords(pod))
}

// lastWords are how the container of a Pod has ended and what it wrote last, as the end of a sentence.
func lastWords(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		ended := c.State.Terminated
		if ended == nil {
			continue
		}
		text := fmt.Sprintf(" with exit code %d", ended.ExitCode)
		if ended.Reason != "" && ended.Reason != "Error" {
			text += " (" + ended.Reason + ")"
		}
		if words := end(strings.TrimSpace(ended.Message)); words != "" {
			text += ": " + words
		}
		return text
	}
	return strings.TrimRight(": "+cmp.Or(pod.Status.Message, pod.Status.Reason), ": ")
}

// end keeps the last part of a text, which is what says why.
func end(text string) string {
	const most = 1500
	if runes := []rune(text); len(runes) > most {
		return "…" + string(runes[len(runes)-most:])
	}
	return text
}

// lingering is a Pod of a migration that has not ended though its Job is gone, "" where there is none.
func (s *scope) lingering() string {
	for _, pod := range s.seen.migrationPods {
		if !pods.Ended(&pod) {
			return pod.Name
		}
	}
	return ""
}

func (s *scope) backupView() backupView {
	m := s.app.Spec.Migration
	if m == nil || !m.Backup {
		return backupView{}
	}
	v := backupView{wanted: true}
	backup := s.seen.backup
	if backup == nil {
		if no := s.seen.database.noBackup; no != "" {
			v.state, v.message = backupFailed, no
		}
		return v
	}
	c := meta.FindStatusCondition(backup.Status.Conditions, toban.ConditionComplete)
	switch {
	case backup.Labels[naming.LabelMyApp] != s.app.Name || backup.Spec.SampleDB != s.seen.database.sampleDB:
		v.state = backupFailed
		v.message = fmt.Sprintf("DatabaseBackup %s does not belong to this MyApp: delete it", backup.Name)
	case c != nil && c.Status == metav1.ConditionTrue:
		v.state = backupComplete
	case c != nil && backup.Status.CompletedAt != nil:
		v.state, v.message = backupFailed, fmt.Sprintf("DatabaseBackup %s: %s", backup.Name, c.Message)
	case c != nil:
		v.state, v.message = backupRunning, fmt.Sprintf("DatabaseBackup %s: %s", backup.Name, c.Message)
	default:
		v.state, v.message = backupRunning, fmt.Sprintf("DatabaseBackup %s was created", backup.Name)
	}
	return v
}
